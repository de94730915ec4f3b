"""Which engine is up, and which run a picture is about, in one line each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_launcher.view import EngineView


def subject_of_engine(view: EngineView) -> str:
    """Return the line for an engine."""
    return _joined(view.checkpoint or view.served_model, view.version, view.device)


def subject_of_run(folder: Path, view: EngineView) -> str:
    """Return the line for a run that this engine serves."""
    return _joined(f"run {folder.name}", subject_of_engine(view))


def subject_of_record(folder: Path, record: Mapping[str, Any]) -> str:
    """Return the line for a past run, from its run.json."""
    plan, engine = _part(record, "plan"), _part(record, "engine")
    engine = engine or _part(plan, "engine")
    checkpoint = str(plan.get("checkpoint") or "")
    version, device = str(engine.get("version") or ""), str(engine.get("device") or "")
    return _joined(f"past run {folder.name}", checkpoint, version, device)


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = record.get(name)
    return part if isinstance(part, Mapping) else {}


def _joined(*words: str) -> str:
    return " · ".join(word for word in words if word)
