"""What a person decides about an engine, as one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
