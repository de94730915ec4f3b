"""The KV-cache bytes of a model, for window and command line alike: from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.describe import config_path
from engine_launcher.view import EngineView
from measurements.kv import arithmetic
from measurements.kv.arithmetic import KvError, KvLayout
from measurements.kv.config import ModelKv, read_config
from measurements.kv.fields import ConfigError

TOKENS = 2048  # the sequence length that the assignment asks about
GIB = 2**30
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True, kw_only=True)
class KvAnswer:
    """The bytes of a batch of sequences, with the arithmetic that leads there."""

    bytes: int
    formula: str
    tokens: int
    dtype: str
    batch: int = 1
    assumptions: tuple[str, ...] = ()

    @property
    def gib(self) -> float:
        """The bytes in GiB of 2^30."""
        return self.bytes / GIB

    def as_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            "bytes": self.bytes,
            "gib": self.gib,
            "formula": self.formula,
            "tokens": self.tokens,
            "dtype": self.dtype,
            "batch": self.batch,
            "assumptions": list(self.assumptions),
        }


def answer(
    layout: KvLayout, tokens: int, dtype: str, batch: int = 1, assumptions: tuple[str, ...] = ()
) -> KvAnswer:
    """Return the bytes of `batch` sequences of `tokens` tokens each; KvError for absurd sizes."""
    return KvAnswer(
        bytes=arithmetic.total_bytes(layout, tokens, dtype, batch),
        formula=arithmetic.formula(layout, tokens, dtype, batch),
        tokens=tokens,
        dtype=dtype,
        batch=batch,
        assumptions=assumptions,
    )


def model_answer(path: Path, tokens: int, dtype: str = "", batch: int = 1) -> KvAnswer:
    """Return the answer for a model's folder or config.json; ConfigError where it is unreadable."""
    model = read_config(path)
    assumptions = model.assumptions
    if not dtype and not model.dtype:
        assumptions += ("The config names no dtype: two bytes an element, as bf16 has, are taken.",)
    return answer(model.layout, tokens, dtype or model.dtype or "bf16", batch, assumptions)


def engine_answer(view: EngineView, model: str = "", tokens: int = TOKENS) -> KvAnswer | str:
    """Return the answer for the model of an engine, or a sentence on why there is none.

    `model` names the checkpoint where the engine's settings do not: that of an attached server.
    """
    settings = view.settings
    path = config_path(model or settings.model)
    if path is None:
        name = view.checkpoint or model or "the model"
        return f"The config.json of {name} is not on this disk: name its folder with --model."
    try:
        return model_answer(path, tokens, _cache_dtype(view, read_config(path)))
    except (ConfigError, KvError) as error:
        return str(error)


def _cache_dtype(view: EngineView, model: ModelKv) -> str:
    """Return the cache's dtype: the one asked for, else what the engine makes of the weights'."""
    asked = DTYPES.get(view.settings.dtype, "")
    # vLLM runs float32 weights in 16 bits unless it is told otherwise.
    halved = view.settings.kind == "vllm" and model.dtype == "fp32"
    return asked or ("bf16" if halved else "")
