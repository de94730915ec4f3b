import json
import shutil
from pathlib import Path

import pytest
from hand_written_runs import load_rows, stream, together, write_run

from measurements.run_folder import columns
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.reader import list_runs, read
from measurements.summary import as_json, summarize


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A small run with a row or two in every file."""
    rows = together(
        stream(1, 0.0, [(0.1, 1), (0.2, 2)]),
        stream(2, 0.5, [(0.1, None)], status="http_error", reason='"HTTP 503", busy'),
    )
    rows["requests"][1]["reason"] = '"""HTTP 503"", busy"'
    client = [{"at_s": 1.0, "in_flight": 1, "lag_p99_s": 0.0001}]
    metrics = [{"at_s": 1.0, "running": 1}]
    load = load_rows((0.0, "measuring", 1, 1), (1.0, "done", 1, 0))
    folder = write_run(
        tmp_path / "run",
        record={"plan": {"checkpoint": "tiny-lm", "load": {"concurrency": 1}}},
        **rows,
        load=load,
        client=client,
        server_metrics=metrics,
    )
    piece = {"request_id": 1, "at_s": 0.1, "kind": "content", "text": "Grüße 🙂"}
    (folder / "text.jsonl").write_text(json.dumps(piece, ensure_ascii=False) + "\n")
    return folder


def test_a_whole_run_opens_without_warnings(run_folder: Path) -> None:
    run = read(run_folder)
    assert run.warnings == ()
    assert run.record["state"] == "done"
    assert run.requests["reason"].tolist() == ["", '"HTTP 503", busy']
    assert run.load["state"].tolist() == ["measuring", "done"]
    assert [piece.text for piece in run.text] == ["Grüße 🙂"]


@pytest.mark.parametrize("name", [*columns.FILES, "text.jsonl", "run.json"])
def test_a_run_opens_wherever_a_file_was_cut(run_folder: Path, name: str) -> None:
    data = (run_folder / name).read_bytes()
    for cut in range(len(data)):
        (run_folder / name).write_bytes(data[:cut])
        run = read(run_folder)
        summarize(run)
        whole_lines = data[:cut].endswith(b"\n") or not cut
        assert bool(run.warnings) == (name == "run.json" or not whole_lines), cut


def test_only_the_line_that_was_cut_is_lost(run_folder: Path) -> None:
    path = run_folder / "tokens.csv"
    path.write_bytes(path.read_bytes()[:-1])
    run = read(run_folder)
    assert run.tokens["index"].tolist() == [0, 1]
    assert run.warnings == ("tokens.csv ends in the middle of a line, which was left out.",)


def test_missing_files_are_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format_version": 1}')
    run = read(tmp_path)
    assert len(run.tokens["index"]) == 0
    assert as_json(summarize(run))["requests"] == 0


def test_a_run_without_its_record_opens_with_a_warning(run_folder: Path) -> None:
    (run_folder / "run.json").unlink()
    run = read(run_folder)
    assert run.record == {}
    assert len(run.tokens["index"]) == 3
    assert "run.json is missing" in run.warnings[0]


def test_damaged_lines_are_counted_in_a_warning(run_folder: Path) -> None:
    with (run_folder / "tokens.csv").open("a") as file:
        file.write("what is this\n")
    assert read(run_folder).warnings == ("Damaged lines that were left out: 1.",)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ('{"format_version": 2}', "has format 2 and this Latency Lab reads up to 1"),
        ('{"name": "something"}', "is not a run folder of Latency Lab"),
        ("[1, 2]", "is not a run folder of Latency Lab"),
        ('{"format_version": "1"}', "has no format_version"),
    ],
)
def test_the_record_of_another_tool_or_version_is_refused(
    tmp_path: Path, record: str, sentence: str
) -> None:
    (tmp_path / "run.json").write_text(record)
    with pytest.raises(RunFolderError, match=sentence):
        read(tmp_path)


def test_a_folder_without_any_file_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"it has no run\.json"):
        read(tmp_path)
    with pytest.raises(RunFolderError, match=r"it has no run\.json"):
        read(tmp_path / "nowhere")


def test_a_file_in_the_place_of_a_table_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format_version": 1}')
    (tmp_path / "tokens.csv").mkdir()
    with pytest.raises(RunFolderError, match=r"tokens\.csv cannot be read"):
        read(tmp_path)


def test_runs_are_listed_newest_first_and_strangers_are_passed_over(run_folder: Path) -> None:
    root = run_folder.parent
    later = root / "later"
    shutil.copytree(run_folder, later)
    record = json.loads((later / "run.json").read_text())
    record |= {"started_utc": "2026-12-01T14:30:00Z", "state": "idle"}
    (later / "run.json").write_text(json.dumps(record))
    (root / "stranger").mkdir()
    (root / "file.txt").write_text("")
    entries = list_runs(root)
    assert [entry.name for entry in entries] == ["later", "run"]
    assert (entries[0].checkpoint, entries[0].concurrency) == ("tiny-lm", 1)


def test_the_list_shows_where_a_run_that_was_killed_stood(run_folder: Path) -> None:
    (run_folder / "run.json").write_text('{"format_version": 1, "state": "idle"}')
    with (run_folder / "load.csv").open("w") as file:
        file.write(",".join(columns.LOAD) + "\n0.1,warming_up,1,0\n0.5,measuring,1,1\n0.9,drain")
    assert [entry.state for entry in list_runs(run_folder.parent)] == ["measuring"]


def test_a_root_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "nowhere") == []
