"""A URL as a person types it, in its normal form."""

from urllib.parse import SplitResult, urlsplit

_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/responses", "/health", "/metrics")


def normal_form(typed: str) -> str:
    """Return `scheme://host[:port][/prefix]/v1`; ValueError with one sentence where it is none."""
    text = typed.strip()
    if not text:
        raise ValueError("Type the URL of a server, such as http://127.0.0.1:8000.")
    parts = _split(text if "://" in text else f"http://{text}", typed)
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    path = path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}/v1"


def root(base_url: str) -> str:
    """Return a normal form without its `/v1`: where `/health`, `/metrics` and `/version` are."""
    return base_url.removesuffix("/v1")


def host(base_url: str) -> str:
    """Return the bare host of a URL."""
    return urlsplit(base_url).hostname or ""


def is_loopback(base_url: str) -> bool:
    """Whether the URL names this machine."""
    name = host(base_url)
    return name in {"localhost", "::1"} or name.startswith("127.")


def of(bind_host: str, port: int) -> str:
    """Return where a server that listens on `bind_host` is reached from this machine."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(bind_host, bind_host)  # noqa: S104
    return (
        f"http://[{reachable}]:{port}/v1" if ":" in reachable else f"http://{reachable}:{port}/v1"
    )


def _split(url: str, typed: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.hostname and parts.port != 0 and not any(c.isspace() for c in url)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"“{typed.strip()}” is no URL: write it as http://host:port.")
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f"“{parts.scheme}” is no scheme for an engine: use http or https.")
    if parts.username or parts.password:
        raise ValueError("Leave name and password out of the URL: it is written into the log.")
    return parts
