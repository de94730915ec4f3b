"""The assignment without a screen: engine up, one run a level, engine down."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import msgspec

from app.interrupts import Interrupts
from app.level import POLL_S, Level, run_level
from app.session import RunRefusedError, plan_for
from app.terminal import Progress
from engine_launcher import engines
from engine_launcher.engine import Engine
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements.plan import Load, Plan, Prompts

SETTLE_S = 3.0  # how long a dying engine may take to be seen as dead
READY_AGAIN_S = 30.0  # how long an engine may be unresponsive between two levels
_AT_REST = frozenset({EngineState.FAILED, EngineState.STOPPED})
_GONE = _AT_REST | {EngineState.STOPPING}


class ExitCode(IntEnum):
    """What the command's exit code means."""

    MEASURED = 0
    MEASURED_LESS = 1
    BAD_INPUT = 2
    ENGINE_FAILED = 3
    INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What is measured, and against which engine."""

    settings: EngineSettings
    levels: tuple[int, ...]
    load: Load  # concurrency, and requests where no duration is set, are filled in for each level
    prompts: Prompts
    runs_dir: Path
    requests: int | None = None  # a level; None: `default_requests`
    keep_text: bool = True


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that the assignment brought, also where it ended early."""

    engine: EngineView
    levels: tuple[Level, ...]
    exit_code: ExitCode
    sentence: str = ""  # why it ended early


class EngineFailedError(Exception):
    """The engine did not come up, or went away; its text is one sentence."""


def default_requests(load: Load) -> int | None:
    """Return a level's requests: 16, two a stream or ten seconds of a rate; None if it is timed."""
    if load.duration_s is not None:
        return None
    wanted = 2 * load.concurrency if load.rate is None else math.ceil(10 * load.rate)
    return max(16, wanted)


def measure(
    task: Assignment, engines_dir: Path, progress: Progress, interrupts: Interrupts
) -> Outcome:
    """Measure every level and leave no process behind; raise `Refusal` before anything starts."""
    engine = Engine(engines_dir)
    levels: list[Level] = []
    code, sentence = ExitCode.MEASURED, ""
    try:
        _bring_up(engine, task.settings, progress, interrupts)
        for level in _levels(task, engine, progress, interrupts):
            levels.append(level)  # noqa: PERF402 - one by one: what came before an end is kept
    except EngineFailedError as error:
        code, sentence = ExitCode.ENGINE_FAILED, str(error)
    except RunRefusedError as error:
        code, sentence = ExitCode.BAD_INPUT, str(error)
    except KeyboardInterrupt:
        code, sentence = ExitCode.INTERRUPTED, "Interrupted; what was measured is kept."
    finally:
        outlived = _take_down(engine, progress)
    if code is ExitCode.MEASURED and not all(level.complete for level in levels):
        code = ExitCode.MEASURED_LESS
    if outlived and code is not ExitCode.INTERRUPTED:
        code = ExitCode.ENGINE_FAILED
    return Outcome(
        engine=engine.view,
        levels=tuple(levels),
        exit_code=code,
        sentence=" ".join(filter(None, (sentence, outlived))),
    )


def _take_down(engine: Engine, progress: Progress) -> str:
    """Stop the engine, or let go of an attached one; return a sentence on what outlived that."""
    if engine.view.pid is not None:
        progress.update("stopping the engine", "")
    engine.close()
    progress.clear()
    return engine.view.sentence if engine.view.survivors else ""


def _bring_up(
    engine: Engine, settings: EngineSettings, progress: Progress, interrupts: Interrupts
) -> None:
    """Start the engine, or attach to it, and wait until it is ready."""
    begin = engine.attach if settings.kind == "attached" else engine.start
    begin(settings)
    said = engine.view.notes
    for note in said:
        progress.say(note)
    while (view := engine.poll()).state is not EngineState.READY:
        # At rest with a phase: connecting to a server that somebody else runs.
        if view.state in _AT_REST and not view.phase:
            raise EngineFailedError(view.sentence or "The engine ended before it was ready.")
        progress.update(f"engine: {view.phase or view.state}", f"{view.elapsed_s:.0f} s")
        interrupts.sleep(POLL_S)
    progress.say(f"engine ready after {view.elapsed_s:.0f} s at {view.base_url}")
    for note in view.notes[len(said) :]:
        progress.say(note)


def _levels(
    task: Assignment, engine: Engine, progress: Progress, interrupts: Interrupts
) -> Iterator[Level]:
    """Measure one level after the other for as long as the engine lives and nobody interrupts."""

    def must_end() -> bool:
        return interrupts.asked or engine.poll().state in _GONE

    for concurrency in task.levels:
        view = _wait_until_answering(engine, interrupts)
        plan = _plan(task, concurrency, view)
        key = engines.api_key(task.settings)
        level = run_level(plan, task.runs_dir, progress, must_end, key, view.log_path)
        yield level
        interrupts.check()
        _check_alive(engine, 0.0 if level.complete else SETTLE_S)


def _plan(task: Assignment, concurrency: int, view: EngineView) -> Plan:
    load = msgspec.structs.replace(task.load, concurrency=concurrency)
    requests = task.requests or default_requests(load)
    load = msgspec.structs.replace(load, requests=requests)
    return plan_for(view, load, task.prompts, keep_text=task.keep_text)


def _wait_until_answering(engine: Engine, interrupts: Interrupts) -> EngineView:
    """Return the view of a ready engine; one that is unresponsive gets a bounded time."""
    deadline = time.monotonic() + READY_AGAIN_S
    while (view := engine.poll()).state is not EngineState.READY:
        if view.state in _GONE or time.monotonic() > deadline:
            raise EngineFailedError(view.sentence or "The engine does not answer.")
        interrupts.sleep(POLL_S)
    return view


def _check_alive(engine: Engine, patience_s: float) -> None:
    """Raise if the engine is gone; it may take a moment until a dying one is seen as dead."""
    deadline = time.monotonic() + patience_s
    while (view := engine.poll()).state not in _GONE:
        if time.monotonic() >= deadline:
            return
        time.sleep(POLL_S)
    raise EngineFailedError(view.sentence or "The engine ended while it was measured.")
