"""What the KV calculator answers, as a function of what was typed. No Qt."""

from dataclasses import dataclass

from app.panels.wording import NOTHING
from measurements.kv.arithmetic import KvError, KvLayout, KvShape, formula, total_bytes

GIB = 2**30
SHAPE_FIELDS = ("layers", "kv_heads", "head_dim")
_NAMES = {
    "layers": "Layers",
    "kv_heads": "KV heads",
    "head_dim": "Head dim",
    "tokens": "Sequence length",
    "batch": "Batch",
}
_MOST_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class KvTyped:
    """The fields as they stand; a layout read from a model takes the place of the shape."""

    layers: str
    kv_heads: str
    head_dim: str
    tokens: str
    batch: str
    dtype: str
    layout: KvLayout | None = None


@dataclass(frozen=True, kw_only=True)
class KvAnswer:
    """Bytes with their formula, or one sentence on what is wrong."""

    total: int | None = None
    formula: str = ""
    sentence: str = ""

    @property
    def bytes_text(self) -> str:
        """The bytes as a person reads them."""
        return NOTHING if self.total is None else f"{self.total:,} bytes"

    @property
    def gib_text(self) -> str:
        """The same in GiB (2^30)."""
        return NOTHING if self.total is None else f"{self.total / GIB:.4g} GiB"


def answer(typed: KvTyped) -> KvAnswer:
    """Return the bytes of the cache, or what is wrong with the input."""
    try:
        layout = (
            typed.layout
            or KvShape(
                **{name: _whole(name, getattr(typed, name)) for name in SHAPE_FIELDS}
            ).layout()
        )
        tokens, batch = _whole("tokens", typed.tokens), _whole("batch", typed.batch)
        return KvAnswer(
            total=total_bytes(layout, tokens, typed.dtype, batch),
            formula=formula(layout, tokens, typed.dtype, batch),
        )
    except KvError as error:
        return KvAnswer(sentence=str(error))


def plain_shape(layout: KvLayout) -> dict[str, str] | None:
    """Return the three numbers of a plain model; None where they do not say it all."""
    if len(layout.groups) != 1 or layout.states:
        return None
    group = layout.groups[0]
    plain = (
        group.k_dim == group.v_dim
        and group.window is None
        and group.tokens_per_entry == 1
        and group.element_bytes is None
        and not group.cross
    )
    numbers = (group.layers, group.kv_heads, group.k_dim)
    return dict(zip(SHAPE_FIELDS, map(str, numbers), strict=True)) if plain else None


def _whole(name: str, text: str) -> int:
    if not text.strip():
        raise KvError(f"{_NAMES[name]} is empty: type a whole number above 0.")
    digits = text.strip().replace(",", "").replace(" ", "").replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits[:_MOST_DIGITS])):
        raise KvError(f"{_NAMES[name]} is a whole number above 0, not “{text.strip()}”.")
    return int(digits)
