"""Open a run folder as a whole, also one of a run that was cut off at any moment."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from measurements.run_folder import columns, tables
from measurements.run_folder.create import PLAN_FILE
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.tables import Table
from measurements.run_folder.tail import Batch, RunTail, TextPiece
from measurements.states import RunState

RECORD_FILE = "run.json"
_TABLES = tuple(Path(name).stem for name in columns.FILES)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as its folder tells it."""

    folder: Path
    record: dict[str, Any]  # run.json; empty where it is missing or was cut off
    sends: Table
    tokens: Table
    events: Table
    requests: Table
    load: Table
    client: Table
    server_metrics: Table
    text: list[TextPiece]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run as a list of runs shows it."""

    folder: Path
    name: str
    started_utc: str
    checkpoint: str
    concurrency: int | None
    state: str  # the last that was recorded; of a run that was killed, where it stood


def read(folder: Path) -> Run:
    """Return all of a run; what is missing or damaged is said in `warnings`."""
    record, warnings = read_record(folder)
    tail = RunTail(folder)
    batches = list(_batches(tail))
    warnings += [
        f"{name} ends in the middle of a line, which was left out." for name in tail.unfinished()
    ]
    if damaged := sum(batch.damaged for batch in batches):
        warnings.append(f"Damaged lines that were left out: {damaged}.")
    return Run(
        folder=folder,
        record=record,
        **{name: tables.joined([getattr(b, name) for b in batches]) for name in _TABLES},
        text=[piece for batch in batches for piece in batch.text],
        warnings=tuple(warnings),
    )


def _batches(tail: RunTail) -> Iterator[Batch]:
    batch = tail.poll()
    yield batch
    while batch.more:
        batch = tail.poll()
        yield batch


def read_record(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the content of run.json, or an empty one and what is wrong with it."""
    path = folder / RECORD_FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        if not is_run_folder(folder):
            raise RunFolderError(
                f"{folder} is not a run folder of Latency Lab: it has no {RECORD_FILE}."
            ) from error
        return {}, [f"{RECORD_FILE} is missing: the run is known by its tables alone."]
    try:
        record = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}, [f"{RECORD_FILE} is damaged: the run is known by its tables alone."]
    _check_format(folder, record)
    return record, []


def is_run_folder(folder: Path) -> bool:
    """Return whether any file of a run lies there."""
    return any((folder / name).is_file() for name in (RECORD_FILE, PLAN_FILE, *columns.FILES))


def _check_format(folder: Path, record: object) -> None:
    version = record.get("format_version") if isinstance(record, dict) else None
    if not isinstance(version, int):
        raise RunFolderError(
            f"{folder} is not a run folder of Latency Lab: its {RECORD_FILE} has no format_version."
        )
    if version > columns.FORMAT_VERSION:
        raise RunFolderError(
            f"{folder} has format {version} and this Latency Lab reads up to "
            f"{columns.FORMAT_VERSION}: open it with a newer one."
        )


def list_runs(root: Path) -> list[RunEntry]:
    """Return the runs under `root`, newest first; what is no run is passed over."""
    try:
        folders = [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []
    entries = [entry for folder in folders if (entry := _entry(folder))]
    return sorted(entries, key=lambda entry: (entry.started_utc, entry.name), reverse=True)


def _entry(folder: Path) -> RunEntry | None:
    try:
        record, _ = read_record(folder)
    except RunFolderError:
        return None
    plan = _part(record, "plan")
    concurrency = _part(plan, "load").get("concurrency")
    return RunEntry(
        folder=folder,
        name=folder.name,
        started_utc=str(record.get("started_utc") or ""),
        checkpoint=str(plan.get("checkpoint") or ""),
        concurrency=concurrency if isinstance(concurrency, int) else None,
        state=_state(folder, record),
    )


def _part(record: dict[str, Any], name: str) -> dict[str, Any]:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _state(folder: Path, record: dict[str, Any]) -> str:
    """Return the state in run.json if it is final, else the last one in load.csv."""
    recorded = str(record.get("state") or "")
    if recorded in set(RunState) and RunState(recorded).over:
        return recorded
    return _last_logged_state(folder / "load.csv") or recorded


def _last_logged_state(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, io.SEEK_END) - 4096))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return ""
    place = columns.LOAD.index("state")
    whole = [line.decode("utf-8", "replace").split(",") for line in lines if line.endswith(b"\n")]
    known = [row[place] for row in whole if len(row) > place and row[place] in set(RunState)]
    return known[-1] if known else ""
