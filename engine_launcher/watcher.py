"""A child that asks one engine how it is: until it is ready, then once a second.

Run as `python -m engine_launcher.watcher`. The first line on stdin is an `Order` as JSON; the end
of stdin ends the watcher. A JSON line goes to stdout each time something changes: `waiting` (why
it is not ready), `ready`, `unresponsive`, `answering`, `failed`.
"""

import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2

from engine_launcher import records, sweep, urls

GUARD_LIMIT_S = 20.0  # longer than a supervisor takes to end its engine
GUARD_AGAIN_S = 0.1
ASK_AGAIN_S = 0.25  # until ready
HEALTH_EVERY_S = 1.0
HEALTH_LIMIT_S = 3.0
MISSES = 2  # so many unanswered health checks in a row are more than a busy moment
PROBE_LIMIT_S = 120.0  # the first request may compile
_TEXT = "Hello"
_LONGEST_ANSWER = 4 * 1024 * 1024  # bytes: more is no answer to any of these questions
_LONGEST_NAME = 1024  # characters of a model's name
_LONGEST_MESSAGE = 300  # characters of what an error says
_LONGEST_CONTEXT = 10**9  # tokens

_OK = 200
_UNAUTHORIZED = 401
_NO_SUCH_ROUTE = frozenset({404, 405, 501})
_ENGINE_DEAD = 503  # how vLLM's /health says that its engine core has failed


@dataclass(frozen=True, kw_only=True)
class Order:
    """Which engine is watched. The key comes through the pipe, never on the command line."""

    kind: str
    base_url: str
    served_model: str
    api_key: str = ""
    engines_dir: str = ""  # where the record of an engine that the lab started lies


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What is known of an engine once it is ready."""

    served_model: str
    api: Literal["chat", "completions"] = "chat"
    version: str = ""
    per_chunk_usage: bool = False
    root: str = ""  # the checkpoint that the model list names
    max_model_len: int | None = None  # tokens
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status_code: int
    body: bytes


class NotReadyError(Exception):
    """The engine is not ready; the text says why, in a sentence."""


class Watcher:
    """The questions, over one connection pool of its own."""

    def __init__(self, order: Order, client: httpx2.Client) -> None:
        self._order = order
        self._client = client
        self._root = urls.root(order.base_url)

    def ready(self) -> Ready:
        """Return what a ready engine says of itself; NotReadyError where it is not ready."""
        status = self.health()
        attached = self._order.kind == "attached"
        if status != _OK and not (attached and status in _NO_SUCH_ROUTE):
            raise NotReadyError(f"{self._root}/health answers HTTP {status}.")
        listed, notes = self._choose()
        api, more_notes = self._api(listed["id"])
        version = self._vllm_version(listed)
        return Ready(
            served_model=listed["id"],
            api=api,
            version=version,
            per_chunk_usage=self._order.kind == "vllm" or bool(version),
            root=_name(listed.get("root")),
            max_model_len=_length(listed.get("max_model_len")),
            notes=(*notes, *more_notes),
        )

    def health(self) -> int:
        """Return the status of `/health`."""
        return self._ask("GET", f"{self._root}/health").status_code

    def _choose(self) -> tuple[dict[str, Any], list[str]]:
        """Return the model list's entry for the wanted model, and what must be said of it."""
        wanted = self._order.served_model
        models = [] if self._order.kind == "transformers" else self._models()
        for entry in models:
            if wanted in (entry["id"], entry.get("root")):  # root: the path or id that it loaded
                return entry, []
        names = ", ".join(entry["id"] for entry in models)
        if self._order.kind == "attached" and not wanted and models:
            note = f"The server calls its model {models[0]['id']}."
            return models[0], [note] if len(models) == 1 else [f"The server has {names}."]
        if models or not wanted:
            raise NotReadyError(f"“{wanted}” is not served at {self._root}, but {names or '?'} is.")
        return {"id": wanted}, []  # no usable list: the probe decides

    def _models(self) -> list[dict[str, Any]]:
        answer = self._ask("GET", f"{self._order.base_url}/models")
        if answer.status_code == _UNAUTHORIZED:
            raise NotReadyError(f"{self._root} asks for an API key: set LATENCY_LAB_API_KEY.")
        listed = _json(answer).get("data")
        if answer.status_code != _OK or not isinstance(listed, list):
            if self._order.kind == "vllm":
                raise NotReadyError(f"The model list answers HTTP {answer.status_code}.")
            return []
        return [entry for entry in listed if isinstance(entry, dict) and _name(entry.get("id"))]

    def _api(self, model: str) -> tuple[Literal["chat", "completions"], list[str]]:
        """Find out by one token each which of the two ways to ask the engine answers."""
        messages = [{"role": "user", "content": _TEXT}]
        chat = self._probe("/chat/completions", {"model": model, "messages": messages})
        if chat.status_code == _OK:
            return "chat", []
        plain = self._probe("/completions", {"model": model, "prompt": _TEXT})
        if plain.status_code == _OK:
            why = _message(chat).split(". ")[0].rstrip(".")
            refused = f"chat gets HTTP {chat.status_code} ({why})"
            return "completions", [f"Completions instead of chat, since {refused}."]
        raise NotReadyError(
            f"A request of one token gets HTTP {chat.status_code}: {_message(chat)}"
        )

    def _probe(self, path: str, body: dict[str, Any]) -> Answer:
        body |= {"max_tokens": 1, "temperature": 0}
        return self._ask("POST", self._order.base_url + path, json=body, timeout=PROBE_LIMIT_S)

    def _vllm_version(self, listed: dict[str, Any]) -> str:
        if listed.get("owned_by") != "vllm":
            return ""
        version = _json(self._ask("GET", f"{self._root}/version")).get("version")
        return f"vllm {_name(version)}" if _name(version) else ""

    def _ask(self, method: str, url: str, **options: Any) -> Answer:
        try:
            with self._client.stream(method, url, **options) as answer:
                return Answer(answer.status_code, _bounded(answer, url))
        except httpx2.TimeoutException as error:
            raise NotReadyError(f"{url} does not answer.") from error
        except httpx2.DecodingError as error:
            raise NotReadyError(f"{url} answers with bytes that do not decode.") from error
        except httpx2.HTTPError as error:
            raise NotReadyError(f"Nothing answers at {self._root}.") from error
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise NotReadyError(f"{self._root} cannot be asked: it is no URL.") from error


def wait_until_ready(watcher: Watcher) -> Ready:
    """Ask until the engine is ready, and say each new reason why it is not."""
    said = ""
    while True:
        try:
            return watcher.ready()
        except NotReadyError as error:
            if str(error) != said:
                said = str(error)
                _say("waiting", why=said)
        time.sleep(ASK_AGAIN_S)


def watch_health(watcher: Watcher) -> None:
    """Ask once a second, and say when the engine falls silent, answers again, or has failed."""
    misses, silent = 0, False
    while True:
        time.sleep(HEALTH_EVERY_S)
        try:
            status = watcher.health()
        except NotReadyError as error:
            misses += 1
            if misses == MISSES:
                silent = True
                _say("unresponsive", why=str(error))
            continue
        if status == _ENGINE_DEAD:
            _say("failed", why="The engine says that it has failed (HTTP 503).")
        elif silent:
            _say("answering")
        misses, silent = 0, status == _ENGINE_DEAD


def _bounded(answer: httpx2.Response, url: str) -> bytes:
    """Return the body; NotReadyError where it has no end in sight."""
    body = bytearray()
    deadline = time.monotonic() + PROBE_LIMIT_S
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > _LONGEST_ANSWER or time.monotonic() > deadline:
            raise NotReadyError(f"{url} answers without an end.")
    return bytes(body)


def _name(value: object) -> str:
    """Return a name that a server gives, "" where it is none."""
    return value if isinstance(value, str) and len(value) <= _LONGEST_NAME else ""


def _length(value: object) -> int | None:
    """Return a number of tokens that a server gives, None where it is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value <= _LONGEST_CONTEXT else None


def _json(answer: Answer) -> dict[str, Any]:
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _message(answer: Answer) -> str:
    """Return what an error says, in whichever of the usual places it says it."""
    content = _json(answer)
    error = content.get("error", content)
    found = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    said = str(found or answer.body.decode("utf-8", "replace").strip() or "no reason given")
    return said if len(said) <= _LONGEST_MESSAGE else said[:_LONGEST_MESSAGE] + "…"


def _say(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def _end_with_stdin(order: Order) -> None:
    sys.stdin.read()
    if order.engines_dir:
        _guard(Path(order.engines_dir))
    os._exit(0)  # a probe may still be waiting for its answer


def _guard(engines_dir: Path) -> None:
    """Sweep until nothing is left: the app died, and its supervisor may have died with it.

    An app that closes in order kills its watcher first. What a living supervisor looks after is
    left to it.
    """
    deadline = time.monotonic() + GUARD_LIMIT_S
    while any(records.open_records(engines_dir)) and time.monotonic() < deadline:
        sweep.sweep(engines_dir)
        time.sleep(GUARD_AGAIN_S)


def main() -> None:
    """Watch the engine that the first line names, until stdin ends."""
    line = sys.stdin.readline()
    if not line:
        return
    order = Order(**json.loads(line))
    threading.Thread(target=_end_with_stdin, args=(order,), daemon=True).start()
    headers = {"Authorization": f"Bearer {order.api_key}"} if order.api_key else {}
    trust_environment = not urls.is_loopback(order.base_url)  # no proxy on the way to ourselves
    with httpx2.Client(
        headers=headers, timeout=HEALTH_LIMIT_S, trust_env=trust_environment
    ) as client:
        watcher = Watcher(order, client)
        _say("ready", **asdict(wait_until_ready(watcher)))
        watch_health(watcher)


if __name__ == "__main__":
    main()
