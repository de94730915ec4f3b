import re
from pathlib import Path
from typing import get_args

import pytest

from measurements.reply import Status, What
from measurements.run_folder import columns
from measurements.states import RunState

PAGE = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text(encoding="utf-8")


def tables_under(heading: str) -> list[list[list[str]]]:
    """Return the tables of a section, each a list of rows of cells, the header first."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    return [
        [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines()
            if not line.startswith("| ---")
        ]
        for table in found
    ]


@pytest.mark.parametrize("name", columns.FILES)
def test_the_page_explains_every_column_of_a_file_in_its_order(name: str) -> None:
    header, *rows = tables_under(name)[0]
    assert header == ["column", "unit", "meaning"]
    assert tuple(row[0].strip("`") for row in rows) == columns.FILES[name]
    assert all(row[2] for row in rows)


@pytest.mark.parametrize("name", columns.FILES)
def test_a_column_in_seconds_has_that_unit(name: str) -> None:
    _, *rows = tables_under(name)[0]
    assert {row[0] for row in rows if row[1] == "s"} == {
        row[0] for row in rows if row[0].endswith("_s`")
    }


def test_the_page_explains_every_status() -> None:
    _, *rows = tables_under("requests.csv")[1]
    assert [row[0].strip("`") for row in rows] == [status.value for status in Status]


def test_the_page_explains_every_kind_of_event() -> None:
    _, *rows = tables_under("events.csv")[1]
    assert tuple(row[0].strip("`") for row in rows) == get_args(What)


def test_the_page_names_every_state() -> None:
    (state,) = (row for row in tables_under("load.csv")[0] if row[0] == "`state`")
    assert re.findall(r"`(\w+)`", state[2]) == [each.value for each in RunState]
