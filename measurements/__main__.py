"""`python -m measurements FOLDER`: carry out FOLDER/plan.json."""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from measurements import summary, worker
from measurements.plan import Plan
from measurements.run_folder import reader
from measurements.run_folder.columns import FORMAT_VERSION
from measurements.run_folder.writer import write_json
from measurements.states import RunState

EXIT_CODES = {RunState.DONE: 0, RunState.FAILED: 1, RunState.ABORTED: 130}


def main(arguments: list[str]) -> int:
    """Carry out one plan; the exit code says how it ended."""
    if len(arguments) != 1:
        sys.stderr.write("Say which run folder: python -m measurements FOLDER\n")
        return EXIT_CODES[RunState.FAILED]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the app decides what Ctrl-C means
    folder = Path(arguments[0])
    try:
        _log_into(folder)
        plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    except (OSError, msgspec.DecodeError) as error:
        sys.stderr.write(f"The plan of {folder} cannot be read: {error}.\n")
        return EXIT_CODES[RunState.FAILED]
    return _carry_out(folder, plan)


def _log_into(folder: Path) -> None:
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, sys.stderr.fileno())
    os.close(log)


def _carry_out(folder: Path, plan: Plan) -> int:
    record = {"format_version": FORMAT_VERSION, **worker.describe(plan)}
    try:
        write_json(folder / "run.json", record)
        ended = _runner()(worker.run(folder, plan))
        record |= {
            "state": ended.state.value,
            "ended_by": ended.ended_by,
            "sentence": ended.sentence,
            "ended_utc": worker.utc_now(),
            "clock": ended.clock,
            "priority": ended.priority,
        }
        # Written before the summary is made, so that a fault there cannot cost the run.
        write_json(folder / "run.json", record)
        record["summary"] = summary.as_json(summary.summarize(reader.read(folder)))
        write_json(folder / "run.json", record)
    except OSError as error:
        traceback.print_exception(error)
        return EXIT_CODES[RunState.FAILED]
    return EXIT_CODES[ended.state]


def _runner() -> Callable[[Coroutine[Any, Any, worker.Ended]], worker.Ended]:
    """Return uvloop's run where there is a uvloop, asyncio's elsewhere."""
    try:
        import uvloop  # noqa: PLC0415 - not there on every system
    except ImportError:
        return asyncio.run
    return uvloop.run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
