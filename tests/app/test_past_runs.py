import csv
import json
from pathlib import Path

import pytest
from hand_written_runs import load_rows, stream, together, write_run
from lab_command import Lab, assert_one_sentence

RECORD = {"started_utc": "2026-01-02T03:04:05Z", "plan": {"checkpoint": "tiny-lm", "load": {}}}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    arrivals = [(0.1, 1), (0.11, 1), (0.12, 1)]
    for name in ("first", "second"):
        write_run(
            tmp_path / "runs" / name,
            record=RECORD,
            load=load_rows((0.0, "measuring", 1, 1), (1.0, "done", 1, 0)),
            **together(stream(0, 0.0, arrivals), stream(1, 0.5, arrivals)),
        )
    return Lab(tmp_path)


def test_runs_are_listed(lab: Lab) -> None:
    done = lab.run("runs")
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["second", "done"],
        ["first", "done"],
    ]


def test_runs_are_listed_as_one_document(lab: Lab) -> None:
    entries = json.loads(lab.run("runs", "--json").stdout)
    assert {entry["name"] for entry in entries} == {"first", "second"}
    assert entries[0]["checkpoint"] == "tiny-lm"


def test_no_runs_yet_is_said_and_no_error(tmp_path: Path) -> None:
    done = Lab(tmp_path).run("runs")
    assert (done.returncode, done.stderr) == (0, "")
    assert_one_sentence(done.stdout)


def test_past_runs_are_shown_side_by_side(lab: Lab) -> None:
    done = lab.run("show", "first", "second")
    assert done.returncode == 0
    assert "TTFT mean, ms" in done.stdout
    assert done.stdout.count(" 100 ") == 2


def test_a_run_whose_slider_moved_has_a_column_for_each_level(lab: Lab, tmp_path: Path) -> None:
    arrivals = [(0.1, 1), (0.11, 1)]
    streams = (stream(0, 0.0, arrivals), stream(1, 1.0, arrivals, concurrency=8))
    write_run(tmp_path / "runs" / "moved", record=RECORD, **together(*streams))
    lines = lab.run("show", "moved").stdout.splitlines()
    assert lines[0].split() == ["batch", "1", "batch", "8", "last", ":", "first"]
    assert any(line.startswith("\N{EN DASH} not measured") for line in lines)


def test_a_run_that_is_not_there_is_named(lab: Lab) -> None:
    done = lab.run("show", "third")
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
    assert "'third'" in done.stderr


def test_a_folder_that_is_no_run_is_refused(lab: Lab, tmp_path: Path) -> None:
    done = lab.run("show", tmp_path)
    assert done.returncode == 2
    assert_one_sentence(done.stderr)


def test_runs_are_exported_joined(lab: Lab, tmp_path: Path) -> None:
    target = tmp_path / "all.csv"
    done = lab.run("export", "first", "second", "--to", target)
    assert (done.returncode, done.stdout) == (0, f"4 rows written to {target}.\n")
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == ["first", "first", "second", "second"]
    assert {row["started_utc"] for row in rows} == {RECORD["started_utc"]}
    assert float(rows[0]["ttft_s"]) == pytest.approx(0.1)


def test_an_export_for_a_spreadsheet_has_semicolons_and_decimal_commas(
    lab: Lab, tmp_path: Path
) -> None:
    target = tmp_path / "tokens.csv"
    done = lab.run("export", "first", "--what", "tokens", "--to", target, "--semicolon", "--bom")
    assert done.returncode == 0
    data = target.read_bytes()
    assert data.startswith(b"\xef\xbb\xbfrun;started_utc;")
    assert b";0,1" in data


def test_an_export_never_writes_over_a_file(lab: Lab, tmp_path: Path) -> None:
    target = tmp_path / "kept.csv"
    target.write_text("mine", encoding="utf-8")
    done = lab.run("export", "first", "--to", target)
    assert done.returncode == 2
    assert_one_sentence(done.stderr)
    assert target.read_text(encoding="utf-8") == "mine"
