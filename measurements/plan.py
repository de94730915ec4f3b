"""What a run is asked to do: one frozen value that travels from the app to the worker as JSON."""

from typing import Any, Literal

import msgspec

MAX_CONCURRENCY = 256
API_KEY_VARIABLE = "LATENCY_LAB_API_KEY"  # of the worker's environment
MAX_RATE = 10_000.0  # requests per second


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests go. The API key is never part of a plan: it travels in the environment."""

    base_url: str  # normal form: scheme://host:port/v1
    served_model: str
    api: Literal["chat", "completions"] = "chat"
    # per_chunk: vLLM's stream_options.continuous_usage_stats; final: include_usage alone.
    usage: Literal["per_chunk", "final", "none"] = "per_chunk"


class Prompts(msgspec.Struct, frozen=True, kw_only=True):
    """Which prompts are sent."""

    source: str = "short"  # a built-in set's name, or the path of a text, JSON, JSONL or CSV file
    tokens: int | None = None  # synthetic prompts of exactly this length instead of `source`
    seed: int = 0
    unique_prefix: bool = True  # so that a prefix cache is measured only when asked for


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How much is sent, and when.

    Closed loop: each stream sends its next request when its last one ends. Open loop: a request
    is due whenever the schedule says so, and waits only where `concurrency` streams are in flight.
    """

    concurrency: int = 1  # streams, 1 to 256; with a rate: the most that may be in flight
    rate: float | None = None  # requests per second on average; None: closed loop
    arrival: Literal["constant", "poisson"] = "constant"
    seed: int = 0  # of the Poisson schedule
    requests: int | None = None  # counted requests to finish; None: until told to stop
    duration_s: float | None = None  # no more is sent so long after the warm-up
    warmup: int = 2  # requests that are logged and not counted
    max_tokens: int = 64
    temperature: float = 0.2
    ignore_eos: bool = False
    timeout_s: float = 600.0  # one request in all
    idle_timeout_s: float = 120.0  # silence within a stream


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run before it starts."""

    target: Target
    load: Load
    prompts: Prompts = Prompts()
    checkpoint: str = ""  # the checkpoint's own name; the served name is an alias and no more
    keep_text: bool = True
    # What the app knows of the engine (kind, version, command line, device, model config …): copied
    # into run.json as it is.
    engine: dict[str, Any] = msgspec.field(default_factory=dict)
