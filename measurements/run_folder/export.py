"""CSV as a person wants it: what, where and in which dialect; never over an existing file."""

import csv
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from measurements.run_folder import columns
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.reader import read, read_record
from measurements.run_folder.tables import TEXT_COLUMNS, split_line
from measurements.summary import LoadFigures, as_json, summarize

What = Literal["requests", "tokens", "summary"]

_JOINED = ("run", "started_utc")
_FIGURES = ("ttft_s", "ttft_answer_s", "itl_s", "tpot_s", "e2e_s", "from_plan_s")
_SPLIT = ("ttft_queue_s", "ttft_prefill_s", "ttft_rest_s")
_SUMMARY = (
    "level",
    "checkpoint",
    "concurrency",
    "requests",
    "completed",
    "failed",
    "cancelled",
    *(f"{name}_{part}" for name in _FIGURES for part in ("n", "mean", "p50", "p90", "p99")),
    "itl_is_chunk_gap",
    "output_tokens_per_s",
    "output_chunks_per_s",
    "held_s",
    "in_flight_mean",
    *_SPLIT,
    "connect_mean_s",
    "engine_ttft_mean_s",
    "engine_itl_mean_s",
)
_SUMMARY_TEXT = frozenset({"level", "checkpoint"})
# A spreadsheet runs a cell that begins so; an apostrophe in front makes it text.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


class ExportError(RunFolderError):
    """An export cannot be made; the message is for the person."""


@dataclass(frozen=True, kw_only=True)
class ExportDialect:
    """How the numbers and fields are written."""

    delimiter: Literal[",", ";"] = ","
    decimal: Literal[".", ","] = "."
    bom: bool = False  # a byte-order mark, by which spreadsheets know UTF-8


def export(
    runs: Sequence[Path],
    what: What,
    destination: Path,
    dialect: ExportDialect = ExportDialect(),
) -> int:
    """Write one run or several joined to a new file and return the number of rows.

    The file appears whole or not at all: it is written beside its place and linked into it.
    """
    if not runs:
        raise ExportError("There is nothing to export: choose at least one run.")
    if destination.exists():
        raise ExportError(_exists(destination))
    partial = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.part")
    try:
        count = _write(partial, runs, what, dialect)
        _move_to_new(partial, destination)
    except FileExistsError as error:
        raise ExportError(_exists(destination)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"{destination} cannot be written: {reason}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return count


def _exists(destination: Path) -> str:
    return f"{destination} exists already and is left as it is: choose another name."


def _move_to_new(partial: Path, destination: Path) -> None:
    """Give a finished file its name, unless that name is taken by now."""
    try:
        destination.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: take the name first
        destination.open("xb").close()
        partial.replace(destination)


def _write(path: Path, runs: Sequence[Path], what: What, dialect: ExportDialect) -> int:
    encoding = "utf-8-sig" if dialect.bom else "utf-8"
    with path.open("x", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=dialect.delimiter, lineterminator="\r\n")
        header = _SUMMARY if what == "summary" else columns.FILES[f"{what}.csv"]
        text = _SUMMARY_TEXT if what == "summary" else TEXT_COLUMNS
        writer.writerow((*_JOINED, *header))
        return _write_rows(writer, _rows(runs, what, header), [n in text for n in header], dialect)


def _write_rows(
    writer: Any, rows: Iterable[list[str]], text: list[bool], dialect: ExportDialect
) -> int:
    kinds = [True] * len(_JOINED) + text
    count = 0
    for row in rows:
        writer.writerow(
            _harmless(cell) if is_text else _number(cell, dialect.decimal)
            for cell, is_text in zip(row, kinds, strict=True)
        )
        count += 1
    return count


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


def _number(cell: str, decimal: str) -> str:
    if not cell:
        return cell
    try:
        float(cell)
    except ValueError:
        return _harmless(cell)
    return cell.replace(".", decimal)


def _rows(runs: Sequence[Path], what: What, header: Sequence[str]) -> Iterator[list[str]]:
    for folder in runs:
        started = str(read_record(folder)[0].get("started_utc") or "")
        rows = _summary_rows(folder) if what == "summary" else _file_rows(folder, what, header)
        yield from ([folder.name, started, *row] for row in rows)


def _file_rows(folder: Path, what: What, header: Sequence[str]) -> Iterator[list[str]]:
    """Yield the wanted columns of a file of the run, a row at a time: it may be large."""
    path = folder / f"{what}.csv"
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
            yield from _wanted(map(split_line, _whole_lines(file)), header)
    except FileNotFoundError:
        return


def _whole_lines(file: TextIO) -> Iterator[str]:
    return (line.rstrip("\r\n") for line in file if line.endswith("\n"))


def _wanted(rows: Iterator[list[str]], header: Sequence[str]) -> Iterator[list[str]]:
    own = next(rows, [])
    places = [own.index(name) if name in own else None for name in header]
    for row in rows:
        if len(row) == len(own):
            yield ["" if place is None else row[place] for place in places]


def _summary_rows(folder: Path) -> Iterator[list[str]]:
    run = read(folder)
    plan = run.record.get("plan")
    checkpoint = str(plan.get("checkpoint") or "") if isinstance(plan, dict) else ""
    summary = summarize(run)
    yield _summary_row("run", checkpoint, summary)
    for level in summary.levels:
        yield _summary_row("level", checkpoint, level)


def _summary_row(level: str, checkpoint: str, figures: LoadFigures) -> list[str]:
    document = as_json(figures)
    flat = {f"{name}_{part}": v for name in _FIGURES for part, v in document[name].items()}
    split = {f"ttft_{part}": value for part, value in document["ttft_split"].items()}
    cells = {**document, **flat, **split, "level": level, "checkpoint": checkpoint}
    return [_cell(cells.get(name)) for name in _SUMMARY]  # a level lacks the engine's means


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9f}"
    return str(int(value) if isinstance(value, bool) else value)
