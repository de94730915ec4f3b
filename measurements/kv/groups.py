"""One function for each kind of attention: fields of a config in, layer groups out."""

from collections.abc import Iterable
from itertools import groupby

from measurements.kv import heads
from measurements.kv.arithmetic import KvLayout, LayerGroup
from measurements.kv.defaults import INDEXED
from measurements.kv.fields import ConfigError, Fields, checked_whole
from measurements.kv.spans import Span, spans, window

_INDEXER_GROUP = 128  # elements that share a 4-byte scale


def attention(fields: Fields, model_type: str) -> KvLayout:
    """Return MHA, GQA or MQA, with or without windows, and without layers that share a cache."""
    layers = heads.layer_count(fields)
    shared = fields.count("num_kv_shared_layers")
    if shared >= layers:
        raise ConfigError(f"The config says that {shared} of its {layers} layers share a cache.")
    kept = spans(fields, model_type, layers)[: layers - shared]
    if Span.STATE in kept:
        raise ConfigError(
            f"The model type {model_type!r} has layers that keep a state, whose size is not known "
            "here for it."
        )
    return KvLayout(groups=span_groups(fields, model_type, kept))


def span_groups(fields: Fields, model_type: str, kept: Iterable[Span]) -> tuple[LayerGroup, ...]:
    """Return a group for each span that keeps a cache, in the order of `Span`."""
    caching = (span for span in kept if span is not Span.STATE)
    ordered = sorted(caching, key=list(Span).index)
    return tuple(
        _span_group(fields, model_type, span, len(list(same))) for span, same in groupby(ordered)
    )


def _span_group(fields: Fields, model_type: str, span: Span, layers: int) -> LayerGroup:
    kv, dim = _shape(fields, model_type, span)
    return LayerGroup(
        name=span.value,
        layers=layers,
        kv_heads=kv,
        k_dim=dim,
        v_dim=dim,
        window=window(fields, span),
    )


def _shape(fields: Fields, model_type: str, span: Span) -> tuple[int, int]:
    """Return KV heads and head size; Gemma 4's full layers have their own."""
    if model_type == "gemma4_text" and span is Span.FULL:
        own = fields.flag("attention_k_eq_v") and fields.whole("num_global_key_value_heads")
        return own or heads.kv_heads(fields), fields.needed("global_head_dim")
    kv_heads = heads.KV_HEADS_OF.get(model_type, heads.kv_heads)
    return kv_heads(fields), heads.head_dim(fields)


def latent(fields: Fields, model_type: str) -> KvLayout:
    """Return multi-head latent attention: one vector a token and layer, no K and V apart."""
    layers = heads.layer_count(fields)
    if model_type == "longcat_flash":
        layers *= 2  # two attentions a layer
    vector = fields.needed("kv_lora_rank") + fields.needed("qk_rope_head_dim")
    group = LayerGroup(name="latent attention", layers=layers, kv_heads=1, k_dim=vector, v_dim=0)
    if model_type not in INDEXED:
        return KvLayout(groups=(group,))
    return KvLayout(groups=(group, _indexer(fields, layers)))


def _indexer(fields: Fields, layers: int) -> LayerGroup:
    """Return the indexer's key, which vLLM keeps in 8 bits whatever the cache's dtype."""
    size = fields.needed("index_head_dim")
    scales = size // _INDEXER_GROUP * 4
    return LayerGroup(
        name="indexer", layers=layers, kv_heads=1, k_dim=size + scales, v_dim=0, element_bytes=1
    )


def compressed(fields: Fields, _model_type: str) -> KvLayout:
    """Return DeepSeek-V4's attention: a window on every layer, older tokens compressed."""
    layers, dim = heads.layer_count(fields), fields.needed("head_dim")
    near = LayerGroup(
        name="sliding window",
        layers=layers,
        kv_heads=1,
        k_dim=dim,
        v_dim=0,
        window=fields.needed("sliding_window"),
    )
    ratios = [_ratio(item) for item in fields.items("compress_ratios", layers) or []]
    if not ratios:
        raise ConfigError("The config does not say compress_ratios, which its cache depends on.")
    far = (_far(fields, ratio, ratios.count(ratio)) for ratio in sorted(set(ratios) - {0}))
    return KvLayout(groups=(near, *far))


def _ratio(item: object) -> int:
    return 0 if item == 0 else checked_whole("compress_ratios", item)


def _far(fields: Fields, ratio: int, layers: int) -> LayerGroup:
    indexer = fields.needed("index_head_dim") if ratio == _INDEXED_RATIO else 0
    return LayerGroup(
        name=f"compressed {ratio} to 1",
        layers=layers,
        kv_heads=1,
        k_dim=fields.needed("head_dim") + indexer,
        v_dim=0,
        tokens_per_entry=ratio,
    )


_INDEXED_RATIO = 4  # only these layers choose among their entries


def whisper(fields: Fields, _model_type: str) -> KvLayout:
    """Return a speech model's decoder, and its view on the encoder's frames."""
    return _decoder(
        layers=fields.needed("decoder_layers"),
        kv=fields.needed("decoder_attention_heads"),
        dim=_whole_part(fields.needed("d_model"), fields.needed("decoder_attention_heads")),
    )


def t5(fields: Fields, _model_type: str) -> KvLayout:
    """Return T5's decoder; its heads need not add up to the model's width."""
    return _decoder(
        layers=fields.needed("num_decoder_layers", "num_layers"),
        kv=fields.needed("num_heads"),
        dim=fields.needed("d_kv"),
    )


def _decoder(layers: int, kv: int, dim: int) -> KvLayout:
    own = LayerGroup(layers=layers, kv_heads=kv, k_dim=dim, v_dim=dim)
    cross = LayerGroup(
        name="cross-attention", layers=layers, kv_heads=kv, k_dim=dim, v_dim=dim, cross=True
    )
    return KvLayout(groups=(own, cross))


def _whole_part(width: int, heads_: int) -> int:
    if width % heads_:
        raise ConfigError(f"The config's {heads_} heads do not divide its width of {width}.")
    return width // heads_


def image_cross(fields: Fields, _model_type: str) -> KvLayout:
    """Return Llama 3.2 Vision: some layers look at the image and keep nothing of the text."""
    layers = heads.layer_count(fields)
    looking = len(set(map(str, fields.items("cross_attention_layers") or [])))
    if not 0 < looking < layers:
        raise ConfigError(
            "The config does not say which of its layers look at the image: cross_attention_layers."
        )
    kv, dim = heads.kv_heads(fields), heads.head_dim(fields)
    return KvLayout(
        groups=(
            LayerGroup(layers=layers - looking, kv_heads=kv, k_dim=dim, v_dim=dim),
            LayerGroup(
                name="cross-attention",
                layers=looking,
                kv_heads=kv,
                k_dim=dim,
                v_dim=dim,
                cross=True,
            ),
        )
    )


def nothing(fields: Fields, model_type: str) -> KvLayout:
    """Return the empty layout of an encoder: it reads all at once and keeps nothing."""
    if fields.flag("is_decoder"):
        raise ConfigError(f"A {model_type!r} that is used as a decoder is not known here.")
    return KvLayout(groups=())
