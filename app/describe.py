"""What the app knows of an engine, as run.json keeps it."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from app.places import typed_path
from engine_launcher.view import EngineView


def describe_engine(view: EngineView) -> dict[str, Any]:
    """Return all that repeats a run: engine, command line, device, model and its config."""
    return {
        "kind": view.settings.kind,
        "engine_id": view.engine_id,
        "version": view.version,
        "device": view.device,
        "command_line": view.command_line,
        "base_url": view.base_url,
        "served_model": view.served_model,
        "seconds_to_ready": view.elapsed_s,
        "notes": list(view.notes),
        "figures": dict(view.figures),
        "model": _describe_model(view),
    }


def config_path(model: str) -> Path | None:
    """Return the config.json of a checkpoint's folder or of a cached hub id; None if not here."""
    if not model:
        return None
    folder = typed_path(model)
    found = [folder / "config.json", *_cached_configs(model)]
    return next((path for path in found if path.is_file()), None)


def _cached_configs(model_id: str) -> list[Path]:
    """Return where Hugging Face's cache keeps a model's config.json, the newest first."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    snapshots = hub / f"models--{model_id.replace('/', '--')}" / "snapshots"
    return sorted(snapshots.glob("*/config.json"), key=lambda p: p.stat().st_mtime, reverse=True)


def _describe_model(view: EngineView) -> dict[str, Any]:
    """Return the checkpoint's name and path, its config.json and the SHA-256 of that file."""
    model: dict[str, Any] = {"checkpoint": view.checkpoint, "path": view.settings.model}
    # An attached server's model is not ours to look up: a name says nothing about its config.
    path = None if view.settings.kind == "attached" else config_path(view.settings.model)
    if path is None:
        return model
    raw = path.read_bytes()
    try:
        config = json.loads(raw)
    except ValueError:  # the engine will have its own words for that
        config = None
    return model | {"config": config, "config_sha256": hashlib.sha256(raw).hexdigest()}
