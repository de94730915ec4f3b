"""Which layer sees all tokens, which a window of them, and which keeps a state instead."""

from enum import Enum
from typing import Any

from measurements.kv.defaults import ALL_SLIDING, FULL_EVERY, UPPER_SLIDING
from measurements.kv.fields import ConfigError, Fields, checked_whole, shown


class Span(Enum):
    """What a layer keeps of the past."""

    FULL = "full attention"
    SLIDING = "sliding window"
    CHUNKED = "chunked attention"
    STATE = "constant state"


_SPELLINGS = {
    "full_attention": Span.FULL,
    "attention": Span.FULL,
    "sliding_attention": Span.SLIDING,
    "chunked_attention": Span.CHUNKED,
    "linear_attention": Span.STATE,
    "mamba": Span.STATE,
}


def spans(fields: Fields, model_type: str, layers: int) -> list[Span]:
    """Return the span of each layer: as written, else by the rule of the model's class."""
    written = fields.items("layer_types", layers)
    if written is not None:
        return [_spelled(item) for item in written]
    if model_type in FULL_EVERY:
        return _patterned(fields, model_type, layers)
    if model_type in UPPER_SLIDING:
        return _upper_sliding(fields, layers)
    if model_type == "llama4_text":
        return _chunked(fields, layers)
    if model_type in ALL_SLIDING and fields.whole("sliding_window"):
        return [Span.SLIDING] * layers
    return [Span.FULL] * layers


def window(fields: Fields, span: Span) -> int | None:
    """Return how many tokens a layer of this span holds; None: all."""
    if span is Span.SLIDING:
        return fields.needed("sliding_window")
    return fields.needed("attention_chunk_size") if span is Span.CHUNKED else None


def _spelled(item: Any) -> Span:
    span = _SPELLINGS.get(item) if isinstance(item, str) else None
    if span is None:
        raise ConfigError(f"The config has layers of a kind that is not known here: {shown(item)}.")
    return span


def _patterned(fields: Fields, model_type: str, layers: int) -> list[Span]:
    if fields.whole("sliding_window") is None:
        return [Span.FULL] * layers
    pattern = fields.get("sliding_window_pattern")
    if isinstance(pattern, str):
        return _lettered(pattern, layers)
    every = FULL_EVERY[model_type]
    if pattern is not None:
        every = checked_whole("sliding_window_pattern", pattern)
    found = _full_every(every, layers, Span.SLIDING)
    return [*found[:-1], Span.FULL] if model_type == "gemma4_text" else found


def _lettered(pattern: str, layers: int) -> list[Span]:
    """Repeat a pattern such as LLLG; the last layer is global whatever it says."""
    if not pattern or set(pattern) - {"L", "G"}:
        raise ConfigError(
            f"The config's sliding_window_pattern must be of L and G, not {shown(pattern)}."
        )
    letters = (pattern * (layers // len(pattern) + 1))[: layers - 1] + "G"
    return [Span.FULL if letter == "G" else Span.SLIDING for letter in letters]


def _full_every(n: int, layers: int, other: Span) -> list[Span]:
    return [other if (i + 1) % n else Span.FULL for i in range(layers)]


def _upper_sliding(fields: Fields, layers: int) -> list[Span]:
    if not fields.flag("use_sliding_window") or fields.whole("sliding_window") is None:
        return [Span.FULL] * layers
    if fields.get("max_window_layers") is None:
        raise ConfigError("The config has use_sliding_window and does not say max_window_layers.")
    lower = min(fields.count("max_window_layers"), layers)
    return [Span.FULL] * lower + [Span.SLIDING] * (layers - lower)


def _chunked(fields: Fields, layers: int) -> list[Span]:
    if fields.whole("attention_chunk_size") is None:
        return [Span.FULL] * layers
    rope = fields.items("no_rope_layers")  # 1: with rope and chunks, 0: neither
    if rope:
        with_rope = fields.items("no_rope_layers", layers) or []
        return [Span.CHUNKED if item else Span.FULL for item in with_rope]
    return _full_every(fields.whole("no_rope_layer_interval") or 4, layers, Span.CHUNKED)
