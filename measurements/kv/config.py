"""A model's `config.json` to what it keeps of a sequence; what is not known is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from measurements.kv import defaults, groups, heads, hybrids
from measurements.kv.arithmetic import KvLayout
from measurements.kv.fields import ConfigError, Fields, shown

_LARGEST = 16 << 20  # bytes of a config.json; real ones have kilobytes
_TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
_MAX_POSITION = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
)
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32"}

_READERS: dict[str, Callable[[Fields, str], KvLayout]] = {
    "deepseek_v4": groups.compressed,
    "whisper": groups.whisper,
    "t5": groups.t5,
    "mllama_text_model": groups.image_cross,
    "qwen3_next": hybrids.gated_delta,
    "qwen3_5_text": hybrids.gated_delta,
    "jamba": hybrids.jamba,
    "granitemoehybrid": hybrids.granite,
    "nemotron_h": hybrids.nemotron,
    "mamba": hybrids.mamba,
    **dict.fromkeys(defaults.LATENT, groups.latent),
    **dict.fromkeys(defaults.ENCODER_ONLY, groups.nothing),
    **dict.fromkeys(
        (
            *defaults.FULL_EVERY,
            *defaults.ALL_SLIDING,
            *defaults.UPPER_SLIDING,
            *heads.KV_HEADS_OF,
            "llama4_text",
        ),
        groups.attention,
    ),
}

_NOTES = {
    "minicpm3": "As transformers keeps it (latent); vLLM 0.32 runs this model with full K and V.",
    "deepseek_v4": "In a plain layout; vLLM's own default for this model is an 8-bit layout.",
    "cohere2": "vLLM itself holds one token more than the window.",
    **dict.fromkeys(defaults.ENCODER_ONLY, "An encoder: it keeps no KV cache."),
}


@dataclass(frozen=True, kw_only=True)
class ModelKv:
    """What a config says of a model's cache."""

    model_type: str
    layout: KvLayout
    dtype: str | None  # of the weights as shipped: bf16, fp16, fp32; None where it is not said
    max_position: int | None  # tokens
    attention_heads: int | None
    encoder_tokens: int | None  # of one full input of an encoder-decoder (Whisper: frames)
    assumptions: tuple[str, ...]  # what the config leaves open and how it was taken


def read_config(path: Path) -> ModelKv:
    """Read a model's folder, or its config.json."""
    file = path / "config.json" if path.is_dir() else path
    return parse_config(_load(file))


def _load(file: Path) -> Mapping[str, Any]:
    try:
        if not file.is_file():
            raise ConfigError(f"{file} is not there: give a model's folder or its config.json.")
        if (size := file.stat().st_size) > _LARGEST:
            raise ConfigError(f"{file} has {size:,} bytes: that is no model's config.json.")
        config = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not JSON: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{file} is nested too deeply for a model's config.json.") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file} holds no JSON object: it is no model's config.json.")
    return config


def parse_config(config: Mapping[str, Any]) -> ModelKv:
    """Return what a model keeps of a sequence, from the content of its config.json."""
    text = _text_config(config)
    model_type = _model_type(text, config)
    fields = Fields(text, _defaults(text, model_type, nested=text is not config))
    reader = _READERS.get(model_type)
    assumptions = [_NOTES[model_type]] if model_type in _NOTES else []
    if reader is None:
        _refuse_unusual(fields, model_type)
        reader = groups.attention
        if model_type not in _PLAIN:
            assumptions.append(
                f"The model type {model_type or 'without a name'!r} is not known here and was read "
                "as plain attention."
            )
    return ModelKv(
        model_type=model_type,
        layout=reader(fields, model_type),
        dtype=_dtype(text) or _dtype(config),
        max_position=fields.whole(*_MAX_POSITION),
        attention_heads=heads.attention_heads(fields),
        encoder_tokens=fields.whole("max_source_positions"),
        assumptions=tuple(assumptions),
    )


# Read as plain attention, and known to be.
_PLAIN = frozenset(
    {
        "llama",
        "gpt2",
        "bloom",
        "opt",
        "gpt_neox",
        "gptj",
        "phi",
        "gemma",
        "cohere",
        "olmo",
        "olmo2",
        "granite",
        "stablelm",
        "starcoder2",
        "mixtral",
        "hunyuan_v1_dense",
        "chatglm",
        "glm4",
        "smollm3",
    }
)


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the language model's part of a multimodal config, or the config itself."""
    for name in _TEXT_CONFIGS:
        nested = config.get(name)
        if isinstance(nested, dict):
            return nested
        if nested is not None:
            raise ConfigError(f"The config's {name} must be an object, not {shown(nested)}.")
    return config


def _model_type(text: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    model_type = text.get("model_type") or config.get("model_type") or ""
    if not isinstance(model_type, str):
        raise ConfigError(f"The config's model_type must be a name, not {shown(model_type)}.")
    return defaults.ALIASES.get(model_type, model_type)


def _defaults(text: Mapping[str, Any], model_type: str, *, nested: bool) -> defaults.Defaults:
    """Return the class defaults; a nested config without any size is its class as it stands."""
    sizes = ("num_hidden_layers", "num_attention_heads", "hidden_size")
    if nested and not any(name in text for name in sizes):
        return defaults.WHOLE_CLASSES.get(model_type, defaults.SIZES.get(model_type, {}))
    return defaults.SIZES.get(model_type, {})


def _refuse_unusual(fields: Fields, model_type: str) -> None:
    if model_type in defaults.NOT_ATTENTION:
        raise ConfigError(
            f"A model of type {model_type!r} keeps no keys and values, and what it keeps is not "
            "known here."
        )
    unusual = [name for name in defaults.UNUSUAL if not _is_off(fields, name)]
    if found := fields.any_of(unusual):
        raise ConfigError(
            f"The model type {model_type or 'without a name'!r} has {found}, which is not known "
            "here for it: no figure is given rather than a wrong one."
        )


def _is_off(fields: Fields, name: str) -> bool:
    """Return whether a window does not count: switched off, or placed by layer_types."""
    if name not in {"sliding_window", "attention_chunk_size"}:
        return False
    return fields.values.get("use_sliding_window") is False or "layer_types" in fields.values


def _dtype(config: Mapping[str, Any]) -> str | None:
    written = config.get("dtype") or config.get("torch_dtype")
    return _DTYPES.get(written.removeprefix("torch.")) if isinstance(written, str) else None
