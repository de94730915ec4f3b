"""Models in which some layers, or all, keep a constant state (element counts as in vLLM 0.32)."""

from collections import Counter
from collections.abc import Callable

from measurements.kv import heads
from measurements.kv.arithmetic import KvLayout, StateGroup
from measurements.kv.fields import ConfigError, Fields
from measurements.kv.groups import span_groups
from measurements.kv.spans import Span, spans

_FLOAT32 = 4


def gated_delta(fields: Fields, model_type: str) -> KvLayout:
    """Return Qwen3-Next and Qwen3.5: a gated delta net on all but every n-th layer."""
    layers = heads.layer_count(fields)
    if fields.items("layer_types") is None:
        every = fields.needed("full_attention_interval")
        kept = [Span.STATE if (i + 1) % every else Span.FULL for i in range(layers)]
    else:
        kept = spans(fields, model_type, layers)
    return _hybrid(fields, model_type, kept, _gated_delta_state)


def _gated_delta_state(fields: Fields, model_type: str, layers: int) -> StateGroup:
    keys = fields.needed("linear_num_key_heads") * fields.needed("linear_key_head_dim")
    value_dim = fields.needed("linear_value_head_dim")
    value_heads = fields.needed("linear_num_value_heads")
    return StateGroup(
        name="gated delta net",
        layers=layers,
        conv_elements=(fields.needed("linear_conv_kernel_dim") - 1)
        * (2 * keys + value_heads * value_dim),
        recurrent_elements=value_heads * value_dim * fields.needed("linear_key_head_dim"),
        recurrent_bytes=_FLOAT32 if model_type == "qwen3_5_text" else None,
    )


def jamba(fields: Fields, model_type: str) -> KvLayout:
    """Return Jamba: attention on every period-th layer, Mamba on the others."""
    period, offset = fields.needed("attn_layer_period"), fields.count("attn_layer_offset")
    layers = range(heads.layer_count(fields))
    kept = [Span.FULL if i % period == offset else Span.STATE for i in layers]
    return _hybrid(fields, model_type, kept, _jamba_state)


def _jamba_state(fields: Fields, _model_type: str, layers: int) -> StateGroup:
    inner = fields.needed("mamba_expand") * fields.needed("hidden_size")
    return _mamba1(layers, inner, fields.needed("mamba_d_conv"), fields.needed("mamba_d_state"))


def mamba(fields: Fields, _model_type: str) -> KvLayout:
    """Return Mamba: no attention at all."""
    inner = fields.whole("intermediate_size")
    inner = inner or fields.needed("expand") * fields.needed("hidden_size")
    layers = heads.layer_count(fields)
    state = _mamba1(layers, inner, fields.needed("conv_kernel"), fields.needed("state_size"))
    return KvLayout(groups=(), states=(state,))


def _mamba1(layers: int, inner: int, kernel: int, state: int) -> StateGroup:
    return StateGroup(
        name="Mamba",
        layers=layers,
        conv_elements=(kernel - 1) * inner,
        recurrent_elements=inner * state,
    )


def granite(fields: Fields, model_type: str) -> KvLayout:
    """Return Granite 4 hybrid: Mamba 2, attention where layer_types says so."""
    layers = heads.layer_count(fields)
    if fields.items("layer_types") is None:
        raise ConfigError("The config does not say layer_types, which its cache depends on.")
    return _hybrid(fields, model_type, spans(fields, model_type, layers), _granite_state)


def _granite_state(fields: Fields, _model_type: str, layers: int) -> StateGroup:
    count = fields.needed("mamba_n_heads")
    inner = fields.needed("mamba_expand") * fields.needed("hidden_size")
    derived = fields.get("mamba_d_head") in (None, "auto")
    size = inner // count if derived else fields.needed("mamba_d_head")
    return _mamba2(
        layers,
        heads_and_size=(count, size),
        groups=fields.needed("mamba_n_groups"),
        kernel=fields.needed("mamba_d_conv"),
        state=fields.needed("mamba_d_state"),
    )


_NEMOTRON_LETTERS = frozenset("M*-E")  # Mamba 2, attention, MLP, experts


def nemotron(fields: Fields, model_type: str) -> KvLayout:
    """Return Nemotron-H: a letter a layer, with the recurrent part in float32."""
    pattern = fields.get("hybrid_override_pattern")
    if not isinstance(pattern, str) or set(pattern) - _NEMOTRON_LETTERS or not pattern:
        raise ConfigError("The config's hybrid_override_pattern must be of the letters M, *, -, E.")
    layers = fields.whole(*heads.LAYERS)
    if layers is not None and layers != len(pattern):
        raise ConfigError(
            f"The config's hybrid_override_pattern has {len(pattern)} letters for {layers} layers."
        )
    count = Counter(pattern)
    kept = [Span.FULL] * count["*"] + [Span.STATE] * count["M"]
    return _hybrid(fields, model_type, kept, _nemotron_state)


def _nemotron_state(fields: Fields, _model_type: str, layers: int) -> StateGroup:
    return _mamba2(
        layers,
        heads_and_size=(fields.needed("mamba_num_heads"), fields.needed("mamba_head_dim")),
        groups=fields.needed("n_groups"),
        kernel=fields.needed("conv_kernel"),
        state=fields.needed("ssm_state_size"),
        recurrent_bytes=_FLOAT32,
    )


def _mamba2(
    layers: int,
    *,
    heads_and_size: tuple[int, int],
    groups: int,
    kernel: int,
    state: int,
    recurrent_bytes: int | None = None,
) -> StateGroup:
    inner = heads_and_size[0] * heads_and_size[1]
    return StateGroup(
        name="Mamba 2",
        layers=layers,
        conv_elements=(kernel - 1) * (inner + 2 * groups * state),
        recurrent_elements=inner * state,
        recurrent_bytes=recurrent_bytes,
    )


def _hybrid(
    fields: Fields,
    model_type: str,
    kept: list[Span],
    state_of: Callable[[Fields, str, int], StateGroup],
) -> KvLayout:
    keeping_state = kept.count(Span.STATE)
    return KvLayout(
        groups=span_groups(fields, model_type, kept),
        states=(state_of(fields, model_type, keeping_state),) if keeping_state else (),
    )
