"""Whole lines of CSV to arrays, in bulk: a column at a time, never a row at a time."""

import csv
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[np.generic]]

# Every other column is a number; ids and counts too.
TEXT_COLUMNS = frozenset(
    {
        "response_id",
        "finish_reason",
        "status",
        "reason",
        "clock",
        "kind",
        "state",
        "prompt_id",
        "what",
    }
)


def empty_table(columns: Sequence[str]) -> Table:
    """Return a table with these columns and no row."""
    return {name: _column(name, [], 0) for name in columns}


def joined(tables: Sequence[Table]) -> Table:
    """Return one table of all rows; the tables have the same columns."""
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def parse(header: Sequence[str], lines: bytes, columns: Sequence[str]) -> tuple[Table, int]:
    """Return the named columns of whole lines, and how many damaged lines were left out.

    Columns that the file lacks (an older format) are NaN or "". Columns that only the file has (a
    newer format) are left out.
    """
    text = lines.decode("utf-8", "replace").replace("\r\n", "\n")
    fields, damaged = _fields(text, len(header))
    try:
        return _table(header, fields, columns), damaged
    except ValueError:
        sound, unreadable = _without_unreadable(header, fields)
        return _table(header, sound, columns), damaged + unreadable


def split_line(line: str) -> list[str]:
    """Return the fields of one line; none at all where its quotes do not close."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return []


def _fields(text: str, width: int) -> tuple[list[str], int]:
    """Return the fields of all lines as one flat list, and how many lines were left out."""
    if '"' not in text and _all_lines_have(text, width):
        return text.replace("\n", ",").split(",")[:-1], 0
    rows = [split_line(line) for line in text.split("\n")[:-1]]
    sound = [row for row in rows if len(row) == width]
    return [field for row in sound for field in row], len(rows) - len(sound)


def _all_lines_have(text: str, width: int) -> bool:
    marks = np.frombuffer(text.encode(), dtype=np.uint8)
    marks = marks[(marks == ord(",")) | (marks == ord("\n"))]
    if marks.size % width:
        return False
    rows = marks.reshape(-1, width) == ord("\n")
    return bool(rows[:, -1].all() and rows.sum() == len(rows))


def _without_unreadable(header: Sequence[str], fields: list[str]) -> tuple[list[str], int]:
    """Leave out the rows in which a number does not read as one."""
    width = len(header)
    numeric = [i for i, name in enumerate(header) if name not in TEXT_COLUMNS]
    rows = [fields[i : i + width] for i in range(0, len(fields), width)]
    sound = [row for row in rows if all(_is_number(row[i]) for i in numeric)]
    return [field for row in sound for field in row], len(rows) - len(sound)


def _is_number(field: str) -> bool:
    try:
        float(field or "nan")
    except ValueError:
        return False
    return True


def _table(header: Sequence[str], fields: list[str], columns: Sequence[str]) -> Table:
    width = len(header)
    count = len(fields) // width if width else 0
    places = {name: i for i, name in enumerate(header)}
    return {
        name: _column(name, fields[places[name] :: width] if name in places else None, count)
        for name in columns
    }


def _column(name: str, fields: list[str] | None, count: int) -> NDArray[np.generic]:
    if name in TEXT_COLUMNS:
        column = np.full(count, "", dtype=object)
        if fields:
            column[:] = fields
        return column
    if fields is None:
        return np.full(count, np.nan)
    return np.fromiter(map(float, _filled(fields)), dtype=np.float64, count=count)


def _filled(fields: list[str]) -> Iterable[str]:
    """Put "nan" where nothing was measured."""
    return [field or "nan" for field in fields] if "" in fields else fields
