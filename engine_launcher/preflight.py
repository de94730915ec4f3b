"""What would fail, said in a sentence before anything is started."""

import errno
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

from engine_launcher import devices, engines, model_folder
from engine_launcher.problems import INSTALL, Problem, use
from engine_launcher.settings import DTYPES, EngineSettings

_MAX_RANKS = 64
_MAX_LENGTH = 100_000_000  # tokens
_MAX_PORT = 65535
_GIB = 2**30
_LONGEST_SHOWN = 80  # characters of a path that makes no sense
_PORTS_TO_TRY = 200
# What the lab itself says on the command line, and asks for afterwards.
_OWNED = {"--port": "the port", "--model": "the model", "--served-model-name": "the served name"}


def check(settings: EngineSettings) -> tuple[Problem, ...]:
    """Return what would keep this engine from starting or being attached; () where nothing would.

    Takes well under a second: it looks at files, sockets and names, and runs no engine.
    """
    if settings.kind == "attached":
        return tuple(_url(settings))
    absurd = (*_numbers(settings), *_paths(settings))
    if absurd:
        return absurd  # the other checks rely on sane numbers and paths
    checks = (_installation, _words, _model, _shape, _port)
    return tuple(problem for one in checks for problem in one(settings))


def free_port(host: str, after: int) -> int | None:
    """Return the next port above `after` that can be listened on."""
    for port in range(after + 1, min(after + _PORTS_TO_TRY, _MAX_PORT) + 1):
        if _bind_error(host, port) is None:
            return port
    return None


def _url(settings: EngineSettings) -> Iterator[Problem]:
    try:
        engines.base_url(settings)
    except ValueError as error:
        yield Problem("url", str(error))


def _numbers(settings: EngineSettings) -> Iterator[Problem]:
    length, ranks = settings.max_model_len, settings.tensor_parallel
    if not _whole(settings.port, 1, _MAX_PORT):
        yield Problem("port", f"A port is a whole number from 1 to {_MAX_PORT}.", use("port", 8000))
    if length is not None and not _whole(length, 1, _MAX_LENGTH):
        yield Problem("max_model_len", "The model length is a whole number of tokens, 1 or more.")
    if not _whole(ranks, 1, _MAX_RANKS):
        sentence = f"The tensor-parallel size is a whole number from 1 to {_MAX_RANKS}."
        yield Problem("tensor_parallel", sentence, use("tensor_parallel", 1))
    for name, label in _SECONDS.items():
        if not _positive(getattr(settings, name)):
            yield Problem(name, f"{label} is a number of seconds above 0.")
    yield from _kv_space(settings.kv_cache_gib)


_SECONDS = {"start_limit_s": "The start limit", "stop_grace_s": "The grace time of a stop"}


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < float("inf")  # type: ignore[operator]


def _kv_space(gib: float) -> Iterator[Problem]:
    if not _positive(gib):
        yield Problem(
            "kv_cache_gib", "The KV space is a number of GiB above 0.", use("kv_cache_gib", 2.0)
        )
        return
    total = psutil.virtual_memory().total / _GIB
    if gib > total:
        sentence = f"{gib:g} GiB of KV space are more than this machine's {total:.1f} GiB of memory"
        yield Problem("kv_cache_gib", f"{sentence}: ask for less.", use("kv_cache_gib", 2.0))


def _paths(settings: EngineSettings) -> Iterator[Problem]:
    """Yield what cannot even be looked at: a name too long, no such user, no permission."""
    for name, typed in (("model", settings.model), ("python", str(settings.python or ""))):
        try:
            Path(typed).expanduser().exists()
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            yield Problem(name, f"“{_short(typed)}” cannot be looked at: {reason}.")


def _short(typed: str) -> str:
    return typed if len(typed) <= _LONGEST_SHOWN else f"{typed[:_LONGEST_SHOWN]}…"


def _installation(settings: EngineSettings) -> Iterator[Problem]:
    if engines.find(settings) is None:
        python = engines.interpreter(settings)
        lacking = f"{python} has no {settings.kind}" if python.exists() else f"no {python}"
        sentence = f"The engine is not installed ({lacking}): run `make engine`."
        yield Problem("python", sentence, (INSTALL,) if settings.python is None else ())


def _words(settings: EngineSettings) -> Iterator[Problem]:
    try:
        words = shlex.split(settings.extra_arguments)
    except ValueError as error:
        yield Problem("extra_arguments", f"The further arguments do not parse: {error}.")
    else:
        yield from _owned(words)
    if settings.dtype not in DTYPES:
        sentence = f"“{settings.dtype}” is no dtype here: choose one of {', '.join(DTYPES)}."
        yield Problem("dtype", sentence, use("dtype", "auto"))


def _owned(words: list[str]) -> Iterator[Problem]:
    """Find arguments that would make the engine another one than the lab waits for."""
    for word in words:
        what = _OWNED.get(word.partition("=")[0])
        if what:
            sentence = f"{word} is not for the further arguments: {what} has a field of its own."
            yield Problem("extra_arguments", sentence)


def _model(settings: EngineSettings) -> Iterator[Problem]:
    if not settings.model.strip():
        yield Problem("model", "Choose a model: the path of a checkpoint, or a Hugging Face id.")
    elif model_folder.is_local(settings.model):
        sentence = _wrong_with_folder(Path(settings.model).expanduser(), settings.extra_arguments)
        if sentence:
            yield Problem("model", sentence)


def _wrong_with_folder(folder: Path, extra_arguments: str) -> str:
    if not folder.exists():
        return f"There is no model at {folder}."
    if folder.is_file():
        what = "is a file: a checkpoint is a folder with a config.json."
        return "" if folder.suffix == ".gguf" else f"{folder} {what}"
    try:
        model_folder.read_config(folder)
    except FileNotFoundError:
        return f"{folder} has no config.json, so it is no checkpoint."
    except (OSError, ValueError) as error:
        return f"{folder / 'config.json'} cannot be read: {error}."
    return _missing_part(folder, extra_arguments)


def _missing_part(folder: Path, extra_arguments: str) -> str:
    if "tokenizer" not in extra_arguments and not model_folder.has_tokenizer(folder):
        return f"{folder} has no tokenizer: copy its tokenizer files there."
    if "--load-format" not in extra_arguments and not model_folder.has_weights(folder):
        return f"{folder} has no weights: copy its .safetensors files there."
    return ""


def _shape(settings: EngineSettings) -> Iterator[Problem]:
    try:
        config = model_folder.read_config(Path(settings.model).expanduser())
    except (OSError, ValueError):
        config = {}  # an id, or said by _model
    if settings.kind == "transformers":
        if settings.tensor_parallel > 1:
            sentence = "The generate loop runs on one device: set the tensor-parallel size to 1."
            yield Problem("tensor_parallel", sentence, use("tensor_parallel", 1))
        return
    yield from _ranks(settings, model_folder.attention_heads(config))
    yield from _length(settings, model_folder.max_length(config))


def _ranks(settings: EngineSettings, heads: int | None) -> Iterator[Problem]:
    ranks, gpus = settings.tensor_parallel, _gpu_count(settings)
    most = min(gpus or _MAX_RANKS, heads or _MAX_RANKS)
    possible = [n for n in range(1, most + 1) if heads is None or heads % n == 0]
    offered = ", ".join(str(n) for n in possible)
    offer = max((n for n in possible if n <= ranks), default=1)
    if heads is not None and heads % ranks:
        sentence = f"{heads} attention heads cannot be split over {ranks} ranks: take {offered}."
        yield Problem("tensor_parallel", sentence, use("tensor_parallel", offer))
    elif gpus and ranks > gpus:
        have = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        sentence = f"{ranks} ranks need {ranks} GPUs and this machine has {have}: take {offered}."
        yield Problem("tensor_parallel", sentence, use("tensor_parallel", offer))


def _gpu_count(settings: EngineSettings) -> int:
    """Return how many GPUs the engine can use; 0 where it runs on a CPU or nobody knows."""
    return 0 if engines.cpu_only(engines.find(settings)) else len(devices.nvidia_gpus())


def _length(settings: EngineSettings, longest: int | None) -> Iterator[Problem]:
    asked = settings.max_model_len
    stretched = any(word in settings.extra_arguments for word in ("--hf-overrides", "--rope"))
    if asked and longest and asked > longest and not stretched:
        sentence = f"The model length {asked} is above the {longest} tokens of this model"
        offers = use("max_model_len", longest)
        yield Problem("max_model_len", f"{sentence}: take {longest} or less.", offers)


def _port(settings: EngineSettings) -> Iterator[Problem]:
    error = _bind_error(settings.host, settings.port)
    if error is None:
        return
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        sentence = f"“{settings.host}” is no address of this machine: 127.0.0.1 always is."
        yield Problem("host", sentence, use("host", "127.0.0.1"))
        return
    free = free_port(settings.host, settings.port)
    advice = f"{free} is free" if free else "choose another one"
    if error.errno == errno.EACCES:
        sentence = f"Port {settings.port} needs special rights: {advice}."
    else:
        sentence = f"Port {settings.port} is taken by {_listener(settings.port)}: {advice}."
    yield Problem("port", sentence, use("port", free, f"Use port {free}"))


def _bind_error(host: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the engine itself does: connections of the last one may linger.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def _listener(port: int) -> str:
    try:
        sockets = psutil.net_connections("tcp")
        listening = (s for s in sockets if s.status == psutil.CONN_LISTEN and s.pid)
        pid = next(s.pid for s in listening if s.laddr.port == port)
        process = psutil.Process(pid)
        if engines.ENGINE_ID in process.environ():
            return f"another engine of the lab (pid {pid})"
        return f"{process.name()} (pid {pid})"
    except (StopIteration, psutil.Error, OSError):
        return "another program"
