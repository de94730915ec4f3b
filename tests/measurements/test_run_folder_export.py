import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hand_written_runs import ended, stream, together, write_run

from measurements.run_folder import columns
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.export import ExportDialect, ExportError, export


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    folders = []
    for n in (1, 2):
        rows = together(
            stream(1, 0.25, [(0.125, 1), (0.25, 1)], concurrency=n),
            ended(2, "http_error", '"=1+2, HTTP 503"', concurrency=n),
        )
        record = {
            "started_utc": f"2026-12-0{n}T14:30:00Z",
            "plan": {"checkpoint": "tiny-lm", "load": {"concurrency": n}},
        }
        folders.append(write_run(tmp_path / f"run-{n}", record=record, **rows))
    return folders


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_several_runs_are_joined_with_their_name_and_start(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    assert export(runs, "tokens", target) == 4
    rows = rows_of(target)
    assert tuple(rows[0]) == ("run", "started_utc", *columns.TOKENS)
    assert [row["run"] for row in rows] == ["run-1", "run-1", "run-2", "run-2"]
    assert rows[3]["started_utc"] == "2026-12-02T14:30:00Z"
    assert [row["arrival_s"] for row in rows[:2]] == ["0.375000000", "0.500000000"]


def test_text_that_a_spreadsheet_would_run_is_made_harmless(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    assert export(runs[:1], "requests", target) == 2
    assert rows_of(target)[1]["reason"] == "'=1+2, HTTP 503"


def test_a_negative_number_stays_a_number_and_a_formula_in_its_place_does_not(
    tmp_path: Path,
) -> None:
    folder = write_run(tmp_path / "run")
    row = dict.fromkeys(columns.TOKENS, "") | {"since_send_s": "-0.5", "tokens": "=1+1"}
    with (folder / "tokens.csv").open("a") as file:
        file.write(",".join(row.values()) + "\n")
    export([folder], "tokens", tmp_path / "out.csv")
    (read,) = rows_of(tmp_path / "out.csv")
    assert (read["since_send_s"], read["tokens"]) == ("-0.5", "'=1+1")


def test_the_european_dialect_has_semicolons_decimal_commas_and_a_mark(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    dialect = ExportDialect(delimiter=";", decimal=",", bom=True)
    export(runs, "requests", target, dialect)
    assert target.read_bytes().startswith(b"\xef\xbb\xbfrun;started_utc;")
    (row, failed, *_) = rows_of(target, ";")
    assert row["ttft_s"] == "0,125000000"
    assert row["status"] == "ok"
    assert failed["ttft_s"] == ""
    assert failed["reason"] == "'=1+2, HTTP 503"


def test_a_decimal_comma_between_commas_is_quoted(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    export(runs, "tokens", target, ExportDialect(decimal=","))
    assert rows_of(target)[0]["arrival_s"] == "0,375000000"


def test_the_summary_has_a_row_for_each_run(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    assert export(runs, "summary", target) == 2
    rows = rows_of(target)
    assert [(row["level"], row["checkpoint"]) for row in rows] == [("run", "tiny-lm")] * 2
    assert [row["concurrency"] for row in rows] == ["1", "2"]
    assert rows[0]["ttft_s_mean"] == "0.125000000"
    assert (rows[0]["completed"], rows[0]["failed"], rows[0]["ttft_s_p99"]) == ("1", "1", "")


def test_the_summary_of_a_moved_slider_has_a_row_for_each_level(tmp_path: Path) -> None:
    rows = together(*(stream(n, 0.0, [(0.1, 1)], concurrency=n) for n in (1, 8)))
    folder = write_run(tmp_path / "run", **rows)
    assert export([folder], "summary", tmp_path / "out.csv") == 3
    read = rows_of(tmp_path / "out.csv")
    assert [(row["level"], row["concurrency"]) for row in read] == [
        ("run", ""),
        ("level", "1"),
        ("level", "8"),
    ]


def test_an_existing_file_is_never_touched(runs: list[Path]) -> None:
    target = runs[0].parent / "out.csv"
    target.write_text("mine")
    with pytest.raises(ExportError, match="exists already and is left as it is"):
        export(runs, "tokens", target)
    assert target.read_text() == "mine"
    assert not list(target.parent.glob(".*part"))


def test_a_cut_and_a_damaged_line_are_left_out(runs: list[Path]) -> None:
    with (runs[0] / "tokens.csv").open("a") as file:
        file.write("damaged\n1,2,3")
    assert export(runs[:1], "tokens", runs[0].parent / "out.csv") == 2


def test_columns_that_an_older_run_lacks_are_empty(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "tokens.csv").write_text("request_id,index\n1,0\n")
    export([folder], "tokens", tmp_path / "out.csv")
    (row,) = rows_of(tmp_path / "out.csv")
    assert (row["request_id"], row["arrival_s"]) == ("1", "")


def test_a_run_without_the_file_brings_no_row(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "tokens.csv").unlink()
    assert export([folder], "tokens", tmp_path / "out.csv") == 0


@pytest.mark.parametrize("where", ["nowhere/out.csv", "run-1/run.json/out.csv"])
def test_a_place_that_takes_no_file_is_one_sentence(runs: list[Path], where: str) -> None:
    with pytest.raises(ExportError, match=r"out\.csv cannot be written: .*\.$"):
        export(runs, "tokens", runs[0].parent / where)


def test_nothing_to_export_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="choose at least one run"):
        export([], "tokens", tmp_path / "out.csv")


def test_a_folder_that_is_no_run_is_one_sentence_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir()
    with pytest.raises(RunFolderError, match="is not a run folder"):
        export([tmp_path / "stranger"], "requests", tmp_path / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stranger"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse to write beyond `size` bytes, as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_leaves_nothing_half_written(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(i / 100, 1) for i in range(1, 2000)]))
    folder = write_run(tmp_path / "run", **rows)
    with (
        files_of_at_most(20_000),
        pytest.raises(ExportError, match=r"out\.csv cannot be written"),
    ):
        export([folder], "tokens", tmp_path / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
