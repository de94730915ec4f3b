"""What an engine left running, found by session, start time and run id, and killed.

Nothing is ever killed on a pid alone: each process is held by a pidfd and looked at once more
before the signal goes out.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from engine_launcher import records
from engine_launcher.engines import ENGINE_ID
from engine_launcher.records import Record
from engine_launcher.supervisor import Process, descendants, process_table, read_process

_LOOK_AGAIN_S = 0.02


def members(record: Record) -> list[Process]:
    """Return the living processes of a recorded engine.

    A process belongs to it if its environment holds the run id, or if it is in the leader's
    session, or if it descends from such a one. A session's number counts as the leader's only if
    the leader itself or a process with the run id is in it: numbers are used again.
    """
    table = [process for process in process_table() if process.alive]
    marked = [process for process in table if has_run_id(process.pid, record.engine_id)]
    ours = {process.pid: process for process in [*marked, *_session(record, table, marked)]}
    for process in tuple(ours.values()):
        ours.update({child.pid: child for child in descendants(process.pid, table)})
    ours.pop(os.getpid(), None)
    return list(ours.values())


def has_run_id(pid: int, engine_id: str) -> bool:
    """Whether the environment that a process was started with names this engine."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{ENGINE_ID}={engine_id}".encode() in environment.split(b"\0")


def kill(processes: Iterable[Process]) -> None:
    """Send KILL to each of these very processes, and to nobody who has got their pid since."""
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            continue
        try:
            now = read_process(process.pid)
            if now and now.start_time == process.start_time:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            pass  # ended by itself, or another user's: it will show up as a survivor
        finally:
            os.close(handle)


def leftovers(engines_dir: Path) -> list[tuple[Path, Record]]:
    """Return the recorded engines that nobody looks after any more."""
    return [
        (folder, record) for folder, record in records.open_records(engines_dir) if not record.owned
    ]


def sweep(engines_dir: Path, limit_s: float = 1.0) -> list[Process]:
    """Kill what dead labs left; return what is still alive after `limit_s`."""
    deadline = time.monotonic() + limit_s
    survivors: list[Process] = []
    for folder, record in leftovers(engines_dir):
        alive = members(record)
        while alive and time.monotonic() < deadline:
            kill(alive)
            time.sleep(_LOOK_AGAIN_S)
            alive = members(record)
        survivors += alive
        if not alive:
            with suppress(OSError):  # it is looked at again next time
                records.write(folder, replace(record, ended_utc=datetime.now(UTC).isoformat()))
    return survivors


def _session(record: Record, table: list[Process], marked: list[Process]) -> list[Process]:
    leader = record.engine_pid
    proven = any(process.session == leader for process in marked) or any(
        process.pid == leader and process.start_time == record.engine_start for process in table
    )
    return [process for process in table if proven and leader and process.session == leader]
