"""How many heads a model has, and of what size, under all the names that configs use."""

from measurements.kv.fields import ConfigError, Fields

_MOST_LAYERS = 1000
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_HIDDEN = ("hidden_size", "n_embd", "d_model")
# In the order in which vLLM 0.32 looks for them.
_KV_HEADS = (
    "n_head_kv",
    "num_kv_heads",
    "num_key_value_heads",
    "multi_query_group_num",
    "num_attention_groups",
)


def layer_count(fields: Fields) -> int:
    """Return the number of layers."""
    count = fields.needed(*LAYERS)
    if count > _MOST_LAYERS:
        raise ConfigError(f"The config says {count:,} layers: no model has more than a thousand.")
    return count


def attention_heads(fields: Fields) -> int | None:
    """Return the number of query heads, None where the config leaves it out."""
    return fields.whole(*_HEADS)


def kv_heads(fields: Fields) -> int:
    """Return the number of KV heads: as written, else one for each query head."""
    return fields.whole(*_KV_HEADS) or fields.needed(*_HEADS)


def falcon_kv_heads(fields: Fields) -> int:
    """Return 1 for the older Falcon with multi-query attention, else what is written."""
    if fields.flag("multi_query") and not fields.flag("new_decoder_architecture"):
        return 1
    return kv_heads(fields)


def bigcode_kv_heads(fields: Fields) -> int:
    """Return 1 with multi-query attention, else the number of heads."""
    return 1 if fields.flag("multi_query") else fields.needed(*_HEADS)


def nested_kv_heads(fields: Fields) -> int:
    """Return attn_config.kv_n_heads (MPT, DBRX), else the number of heads."""
    inner = Fields(fields.part("attn_config"), {})
    return inner.whole("kv_n_heads") or fields.needed(*_HEADS)


KV_HEADS_OF = {
    "falcon": falcon_kv_heads,
    "gpt_bigcode": bigcode_kv_heads,
    "mpt": nested_kv_heads,
    "dbrx": nested_kv_heads,
}


def head_dim(fields: Fields) -> int:
    """Return the size of a head: as written, else hidden size by heads."""
    written = fields.count("head_dim") or fields.whole("hidden_size_per_head")
    if written:
        return written
    hidden, heads = fields.needed(*_HIDDEN), fields.needed(*_HEADS)
    if hidden % heads:
        raise ConfigError(
            f"The config has no head_dim, and its {heads} heads do not divide its hidden size of "
            f"{hidden}."
        )
    return hidden // heads
