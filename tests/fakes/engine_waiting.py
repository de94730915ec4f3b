"""Waiting for an engine and its processes, with a deadline and without fixed sleeps."""

from pathlib import Path

from waiting import wait_until as until

from engine_launcher.engine import Engine
from engine_launcher.supervisor import read_process
from engine_launcher.view import EngineView

LIMIT_S = 30.0


def poll_until(engine: Engine, *states: str, limit_s: float = LIMIT_S) -> EngineView:
    """Poll an engine until it is in one of these states."""
    until(lambda: engine.poll().state in states, limit_s)
    return engine.view


def pids(folder: Path) -> list[int]:
    """Return the pids that a fake engine's processes wrote down."""
    file = folder / "pids"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    process = read_process(pid)
    return process is not None and process.alive


def living(folder: Path) -> list[int]:
    """Return those of a fake engine's processes that still run."""
    return [pid for pid in pids(folder) if alive(pid)]
