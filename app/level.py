"""One level of the assignment: a run of so many requests at one concurrency, watched to its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.progress import LevelCounts
from app.session import RunSession, RunView
from app.terminal import Progress
from measurements.plan import Plan
from measurements.run_folder.reader import read
from measurements.run_folder.tail import RunTail
from measurements.states import RunState
from measurements.summary import Summary, summarize

POLL_S = 0.05
STOP_LIMIT_S = 10.0  # from stop to the end of a worker


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level as it was measured."""

    concurrency: int
    asked: int | None  # requests; None: as many as its time allowed
    folder: Path
    view: RunView
    summary: Summary
    ended_by: str = ""  # count, time, hand, app gone or failure; empty where a worker was killed

    @property
    def complete(self) -> bool:
        """Whether all that was asked for was measured: the requests, or all that the time held."""
        summary = self.summary
        asked = max(1, summary.requests) if self.ended_by == "time" else self.asked
        return self.view.state is RunState.DONE and summary.completed == asked


def run_level(
    plan: Plan,
    runs_dir: Path,
    progress: Progress,
    must_end: Callable[[], bool],
    api_key: str = "",
    engine_log: Path | None = None,
) -> Level:
    """Run one level; end it early, and orderly, as soon as `must_end` says so."""
    session = RunSession.start(plan, runs_dir, api_key, engine_log)
    try:
        _watch(session, plan, progress, must_end)
    finally:
        view = session.close()
    run = read(session.folder)
    return Level(
        concurrency=plan.load.concurrency,
        asked=plan.load.requests,
        folder=session.folder,
        view=view,
        summary=summarize(run),
        ended_by=str(run.record.get("ended_by") or ""),
    )


def _watch(
    session: RunSession, plan: Plan, progress: Progress, must_end: Callable[[], bool]
) -> None:
    """Show progress until the run is over, or until a run told to stop has had its time."""
    tail, counts = RunTail(session.folder), LevelCounts()
    deadline = None
    while not (view := session.poll()).over:
        counts.add(tail.poll())
        step = f"concurrency {plan.load.concurrency}: {view.state.replace('_', ' ')}"
        progress.update(step, counts.words(plan.load.requests))
        if deadline is None and must_end():
            session.stop()
            deadline = time.monotonic() + STOP_LIMIT_S
        if deadline is not None and time.monotonic() > deadline:
            return
        time.sleep(POLL_S)
