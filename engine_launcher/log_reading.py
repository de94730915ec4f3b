"""Lines of an engine's log → the phase it is in, and the figures that it gives about itself."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

# The last line that matches any of these says the phase. Texts of vLLM 0.32 and transformers 5.
_PHASES = tuple(
    (re.compile(pattern), phase)
    for pattern, phase in (
        (r"non-default args:|Resolved architecture", "reading the configuration"),
        (r"Initializing a V1 LLM engine", "starting the engine core"),
        (r"Starting to load model", "loading weights"),
        (r"Loading (?:safetensors|pt) checkpoint shards: +(\d+)%", "loading weights, {} %"),
        (r"^Loading weights: +(\d+)%", "loading weights, {} %"),
        (r"Loading weights took|Model loading took", "preparing the KV cache"),
        (r"Warming up model for the compilation|Dynamo bytecode|Compiling a graph", "compiling"),
        (r"Capturing CUDA graphs[^%]* (\d+)%", "capturing CUDA graphs, {} %"),
        (r"KV cache size:", "warming up"),
        (r"init engine \(", "starting the server"),
        (r"Application startup complete|Uvicorn running on", "waiting for the first answer"),
    )
)

_NUMBER = r"([\d,]*\.?\d+)"
_FIGURES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern.replace("#", _NUMBER)), names)
    for pattern, names in (
        (r"Using max model len #", ("max_model_len",)),
        (r"Loading weights took # seconds", ("load_weights_s",)),
        (r"Model loading took # GiB memory and # seconds", ("model_memory_gib", "load_model_s")),
        (r"Checkpoint size: # GiB", ("checkpoint_gib",)),
        (r"Available KV cache memory: # GiB", ("kv_cache_gib",)),
        (r"(?:Explicitly|Auto) set \(#/.*for KV cache", ("kv_cache_gib",)),
        (
            r"KV cache size: # tokens, Maximum concurrency for # tokens per request: #x",
            ("kv_tokens", "max_model_len", "max_concurrency"),
        ),
        (r"torch\.compile took # s", ("compile_s",)),
        (r"Graph capturing finished in # secs, took # GiB", ("capture_s", "cuda_graph_gib")),
        (r"init engine \(.*\) took # s", ("init_engine_s",)),
    )
)


@dataclass(frozen=True)
class Reading:
    """What a log has said so far. Figures carry their unit in the name; counts have none."""

    phase: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


def read_on(reading: Reading, lines: Iterable[str]) -> Reading:
    """Return the reading after some more lines."""
    phase, figures = reading.phase, dict(reading.figures)
    for line in lines:
        phase = _phase(line) or phase
        figures.update(_figures(line))
    return replace(reading, phase=phase, figures=figures)


def _phase(line: str) -> str:
    for pattern, phase in _PHASES:
        if match := pattern.search(line):
            return phase.format(*match.groups())
    return ""


def _figures(line: str) -> dict[str, float]:
    for pattern, names in _FIGURES:
        if match := pattern.search(line):
            numbers = (float(text.replace(",", "")) for text in match.groups())
            return dict(zip(names, numbers, strict=True))
    return {}
