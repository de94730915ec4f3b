"""KV-cache bytes from shapes. A model is a tuple of layer groups; a plain one has one group."""

from dataclasses import dataclass
from fractions import Fraction

MOST = 10**12  # beyond this a size is a slip of the keyboard

# Bytes of one element. Weights may be smaller than these; a cache is what the engine says it is.
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


class KvError(ValueError):
    """A size that no cache can have; the message is for the person."""


@dataclass(frozen=True, kw_only=True)
class KvShape:
    """A plain model, as a person types it: every layer keeps K and V of every token."""

    layers: int
    kv_heads: int
    head_dim: int  # elements of one head's K, and of its V

    def layout(self) -> "KvLayout":
        """Return the same as a layout of one group."""
        group = LayerGroup(
            layers=self.layers, kv_heads=self.kv_heads, k_dim=self.head_dim, v_dim=self.head_dim
        )
        return KvLayout(groups=(group,))


@dataclass(frozen=True, kw_only=True)
class LayerGroup:
    """Layers whose caches have one shape and one span."""

    name: str = "full attention"
    layers: int
    kv_heads: int
    k_dim: int  # elements a head
    v_dim: int  # elements a head; 0 where one vector serves as K and V
    window: int | None = None  # tokens held; None: all
    tokens_per_entry: int = 1  # above 1: tokens are compressed to one entry
    element_bytes: int | None = None  # None: those of the cache's dtype
    cross: bool = False  # holds the encoder's tokens, not the sequence's


@dataclass(frozen=True, kw_only=True)
class StateGroup:
    """Layers that keep a constant state a sequence instead of a cache that grows."""

    name: str
    layers: int
    conv_elements: int  # a layer, in the model's dtype
    recurrent_elements: int  # a layer
    recurrent_bytes: int | None = None  # an element; None: the model's dtype


@dataclass(frozen=True, kw_only=True)
class KvLayout:
    """All that a model keeps of a sequence."""

    groups: tuple[LayerGroup, ...]
    states: tuple[StateGroup, ...] = ()


def plain_shape(layout: KvLayout) -> KvShape | None:
    """Return the three sizes of a plain model; None for one that they do not describe."""
    if len(layout.groups) != 1 or layout.states:
        return None
    group = layout.groups[0]
    shape = KvShape(layers=group.layers, kv_heads=group.kv_heads, head_dim=group.k_dim)
    return shape if shape.layout() == layout else None


def bytes_per_token(layout: KvLayout, dtype: str) -> float:
    """Return the growth per token once every window is full; whole unless tokens are compressed."""
    growing = (_token_bytes(g, dtype) for g in _own(layout) if g.window is None)
    return _plain(sum(growing, Fraction()))


def bytes_per_token_within_window(layout: KvLayout, dtype: str) -> float:
    """Return the cost of one of the first tokens, which every layer keeps."""
    return _plain(sum((_token_bytes(g, dtype) for g in _own(layout)), Fraction()))


def bytes_per_sequence(layout: KvLayout, tokens: int, dtype: str) -> int:
    """Return the cache of one sequence: windows capped at their width, no block rounding."""
    _check("sequence length", tokens)
    return _total(sum(group_bytes(group, tokens, dtype) for group in _own(layout)))


def group_bytes(group: LayerGroup, tokens: int, dtype: str) -> int:
    """Return the bytes that a group of layers keeps of a sequence of so many tokens."""
    held = tokens if group.window is None else min(tokens, group.window)
    return held // group.tokens_per_entry * _entry_bytes(group, dtype)


def total_bytes(layout: KvLayout, tokens: int, dtype: str, batch: int = 1) -> int:
    """Return the cache of a batch of sequences of one length."""
    _check("batch", batch)
    return _total(bytes_per_sequence(layout, tokens, dtype) * batch)


def state_bytes(layout: KvLayout, dtype: str) -> int:
    """Return the constant state of one sequence, in bytes, for a model of this dtype."""
    size = _element_bytes(dtype)
    return sum(
        s.layers * (s.conv_elements * size + s.recurrent_elements * (s.recurrent_bytes or size))
        for s in layout.states
    )


def cross_attention_bytes_per_encoder_token(layout: KvLayout, dtype: str) -> int:
    """Return what one token of the encoder (audio, image, source text) costs."""
    return sum(_entry_bytes(group, dtype) for group in layout.groups if group.cross)


def formula(layout: KvLayout, tokens: int, dtype: str, batch: int = 1) -> str:
    """Return the arithmetic with its numbers in it, one line a group of layers."""
    total = total_bytes(layout, tokens, dtype, batch)
    terms = [_term(group, tokens, dtype, batch) for group in _own(layout)]
    if not terms:
        return "no layer keeps a KV cache = 0 bytes"
    return "\n+ ".join(terms) + f" = {total:,} bytes"


def _term(group: LayerGroup, tokens: int, dtype: str, batch: int) -> str:
    held = tokens if group.window is None else min(tokens, group.window)
    entries = held // group.tokens_per_entry
    size = group.element_bytes or _element_bytes(dtype)
    unit = "byte" if size == 1 else "bytes"
    vectors = (
        f"2 × {group.layers:,} layers × {group.kv_heads:,} KV heads × {group.k_dim:,}"
        if group.k_dim == group.v_dim
        else f"{group.layers:,} layers × {group.kv_heads:,} KV heads × {_sides(group)}"
    )
    what = "tokens" if group.tokens_per_entry == 1 else "entries"
    return f"{vectors} × {entries:,} {what} × {size} {unit} × {batch:,}"


def _sides(group: LayerGroup) -> str:
    return f"({group.k_dim:,} + {group.v_dim:,})" if group.v_dim else f"{group.k_dim:,}"


def _own(layout: KvLayout) -> tuple[LayerGroup, ...]:
    """Return the groups that hold the sequence's own tokens."""
    return tuple(group for group in layout.groups if not group.cross)


def _token_bytes(group: LayerGroup, dtype: str) -> Fraction:
    return Fraction(_entry_bytes(group, dtype), group.tokens_per_entry)


def _entry_bytes(group: LayerGroup, dtype: str) -> int:
    _check_group(group)
    size = group.element_bytes or _element_bytes(dtype)
    return group.layers * group.kv_heads * (group.k_dim + group.v_dim) * size


def _element_bytes(dtype: str) -> int:
    try:
        return DTYPE_BYTES[dtype]
    except KeyError:
        known = ", ".join(DTYPE_BYTES)
        raise KvError(f"The dtype {dtype!r} is not known here: choose one of {known}.") from None


def _check_group(group: LayerGroup) -> None:
    _check("number of layers", group.layers)
    _check("number of KV heads", group.kv_heads)
    _check("head dim", group.k_dim)


def _check(what: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise KvError(f"The {what} must be a whole number, not {repr(value)[:40]}.")
    if value <= 0:
        raise KvError(f"The {what} must be at least 1.")
    if value > MOST:
        raise KvError(f"The {what} is absurdly large: at most {MOST:,} makes sense.")


def _total(value: int) -> int:
    """Refuse what no machine of this planet holds; the sizes are each possible, together not."""
    if value > MOST**2:
        raise KvError("These sizes make more bytes than any machine has: check each of them.")
    return value


def _plain(value: Fraction) -> float:
    return value.numerator if value.denominator == 1 else float(value)
