"""`engines/<id>/record.json`: what a later lab needs to recognise an engine of this one."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine_launcher.supervisor import read_process

_FILE = "record.json"


@dataclass(frozen=True, kw_only=True)
class Record:
    """Pids with the start times that tell them from later processes of the same number."""

    engine_id: str  # also in the environment of all of the engine's processes
    boot_id: str  # pids and start times mean nothing after another boot
    started_utc: str
    command_line: str  # without secrets
    app_pid: int
    app_start: int  # ticks since boot, as all start times here
    supervisor_pid: int = 0
    supervisor_start: int = 0
    engine_pid: int = 0  # the leader: also its group's and its session's number
    engine_start: int = 0
    ended_utc: str = ""

    @property
    def owned(self) -> bool:
        """Whether the app or the supervisor that looks after this engine still lives."""
        app = is_same(self.app_pid, self.app_start)
        return app or is_same(self.supervisor_pid, self.supervisor_start)


def is_same(pid: int, start_time: int) -> bool:
    """Whether the process that had this pid and start time is still running."""
    process = read_process(pid) if pid else None
    return process is not None and process.alive and process.start_time == start_time


def start_time_of(pid: int) -> int:
    """Return the start time of a process; 0 where there is no such process, or no /proc."""
    process = read_process(pid)
    return process.start_time if process else 0


def boot_id() -> str:
    """Return what tells this boot from all others; "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def write(folder: Path, record: Record) -> None:
    """Write the record, whole or not at all."""
    unfinished = folder / f"{_FILE}.new"
    unfinished.write_text(json.dumps(asdict(record), indent=2) + "\n", "utf-8")
    unfinished.replace(folder / _FILE)


def open_records(engines_dir: Path) -> Iterator[tuple[Path, Record]]:
    """Yield the records of this boot whose engine has not been seen to end."""
    now = boot_id()
    for path in engines_dir.glob(f"*/{_FILE}"):
        try:
            record = Record(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            continue  # not ours, or of another version
        if record.boot_id == now and not record.ended_utc:
            yield path.parent, record
