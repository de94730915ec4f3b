"""A checkpoint on disk, as far as one must know it before an engine starts."""

import json
from pathlib import Path
from typing import Any

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
)
_WEIGHT_SUFFIXES = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# Rotary scalings that leave the length in the configuration as it is.
_PLAIN_ROPE = {"default", "llama3", "longrope", "su", "mrope", "proportional"}


def is_local(model: str) -> bool:
    """Whether a person means a path, and not a Hugging Face id.

    `owner/name` is an id unless `owner` is a folder here: then it is a path, right or misspelt.
    """
    path = Path(model).expanduser()
    return (
        path.exists()
        or model.startswith(("/", ".", "~"))
        or "\\" in model
        or model.count("/") > 1
        or ("/" in model and path.parent.is_dir())
    )


def own_name(model: str) -> str:
    """Return the checkpoint's own name: the folder's, or the last part of the id."""
    if is_local(model):
        return Path(model).expanduser().resolve().name
    return model.rstrip("/").rsplit("/", 1)[-1]


def read_config(folder: Path) -> dict[str, Any]:
    """Return the language model's configuration; OSError or ValueError where it is unreadable."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    try:
        # A model with eyes keeps its language part in text_config.
        return config | (config.get("text_config") or {})
    except (AttributeError, TypeError) as error:
        raise ValueError("it holds no JSON object") from error


def has_tokenizer(folder: Path) -> bool:
    """Whether any file that a tokenizer is made from is there."""
    return any((folder / name).exists() for name in TOKENIZER_FILES)


def has_weights(folder: Path) -> bool:
    """Whether any file of weights is there."""
    return any(any(folder.glob(suffix)) for suffix in _WEIGHT_SUFFIXES)


def attention_heads(config: dict[str, Any]) -> int | None:
    """Return the number of attention (query) heads, where the configuration gives it."""
    heads = config.get("num_attention_heads", config.get("n_head"))
    return heads if isinstance(heads, int) and heads > 0 else None


def max_length(config: dict[str, Any]) -> int | None:
    """Return the longest sequence in tokens; None where it is unknown or stretched by scaling."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, dict) else ""
    if kind not in _PLAIN_ROPE:
        return None
    lengths = [config[key] for key in _LENGTH_KEYS if isinstance(config.get(key), int)]
    return min(lengths, default=None)
