"""`--as`: another tool's figures beside ours, in the table and in JSON, live and afterwards."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.scheduled_server import ScheduledServer
from fakes.streams import DONE, FIN, ROLE, content, usage
from hand_written_runs import load_rows, stream, together, write_run
from lab_command import Lab, assert_one_sentence

from app.report import NOTHING
from app.tool_words import beside, read_reports
from measurements.run_folder.reader import read
from measurements.summary import summarize

ROLE_MS, TTFT_MS, GAP_MS, FINISH_MS, TOKENS = 20, 200, 20, 340, 5
LOAD = ("--concurrency", "1,2", "--requests", 4, "--warmup", 1)
AWAY = 0.05  # s: how far a busy machine may be from the schedule


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "home")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScheduledServer]:
    """Replies with an early role, five tokens, and an empty chunk that ends them later."""
    texts = [(TTFT_MS + GAP_MS * n, content("a").decode()) for n in range(TOKENS)]
    end = (FIN + usage(TOKENS) + DONE).decode()
    writes = [(ROLE_MS, ROLE.decode()), *texts, (FINISH_MS, end)]
    with ScheduledServer(tmp_path, ttft_ms=1, writes=writes) as running:
        yield running


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def events(folder: Path, what: str) -> list[float]:
    """Arrivals of one kind of event in the counted requests, with connecting, in seconds."""
    connect = {
        row["request_id"]: float(row["connect_s"] or 0)
        for row in rows(folder, "requests.csv")
        if row["warmup"] == "0"
    }
    return [
        float(row["since_send_s"]) + connect[row["request_id"]]
        for row in rows(folder, "events.csv")
        if row["what"] == what and row["request_id"] in connect
    ]


def test_vllms_figures_stand_beside_ours_and_come_from_the_logged_events(
    lab: Lab, server: ScheduledServer
) -> None:
    done = lab.run("measure", "--url", server.url, *LOAD, "--as", "vllm", "--json")
    assert done.returncode == 0, done.stderr
    for level in json.loads(done.stdout)["levels"]:
        said, folder = level["as"], Path(level["run_folder"])
        role, finish = events(folder, "role"), events(folder, "finish")
        assert said["tool"] == "vllm bench serve 0.32"
        assert len(role) == len(finish) == said["completed"] == 4
        assert said["ttft_s"]["mean"] == pytest.approx(np.mean(role))
        assert said["e2e_s"]["mean"] == pytest.approx(np.mean(finish))
        assert said["ttft_s"]["mean"] == pytest.approx(ROLE_MS / 1e3, abs=AWAY)
        assert level["ttft_s"]["mean"] == pytest.approx(TTFT_MS / 1e3, abs=AWAY)
        assert (said["itl_s"]["n"], level["itl_s"]["n"]) == (4 * (TOKENS + 1), 4 * (TOKENS - 1))
        assert said["tpot_s"]["mean"] == pytest.approx(
            (np.mean(finish) - np.mean(role)) / (TOKENS - 1)
        )
        assert said["output_tokens"] == 4 * TOKENS


def test_the_table_has_a_column_of_the_tool_beside_each_of_ours(
    lab: Lab, server: ScheduledServer
) -> None:
    done = lab.run("measure", "--url", server.url, *LOAD, "--as", "vllm")
    assert done.returncode == 0, done.stderr
    ours, _, theirs = done.stdout.partition("as vllm bench serve 0.32 would report them:\n")
    assert theirs.split("\n")[0].split("   ")[-1].strip() == "as the tool"
    assert line_of(theirs, "ITL n") == ["16", "24", "16", "24"]
    assert line_of(theirs, "requests measured") == ["4", "4", "4", "4"]
    assert "batch 1" in ours


@pytest.mark.parametrize("tool", ["vllm", "guidellm", "aiperf"])
def test_a_past_run_is_shown_in_any_tools_words(
    lab: Lab, server: ScheduledServer, tool: str
) -> None:
    measured = lab.run("measure", "--url", server.url, *LOAD, "--json")
    folder = json.loads(measured.stdout)["levels"][0]["run_folder"]
    assert "as" not in json.loads(measured.stdout)["levels"][0]
    shown = lab.run("show", folder, "--as", tool)
    assert shown.returncode == 0, shown.stderr
    (document,) = json.loads(lab.run("show", folder, "--as", tool, "--json").stdout).values()
    assert f"as {document['as']['tool']} would report them:" in shown.stdout
    assert document["as"]["tool"].startswith(tool)
    assert document["as"]["completed"] == document["completed"] == 4


def test_an_unknown_tool_is_refused_in_one_sentence(lab: Lab) -> None:
    done = lab.run("measure", "--url", "http://127.0.0.1:9", "--as", "curl")
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
    assert "vllm, guidellm or aiperf" in done.stderr


def test_a_run_of_before_the_events_is_refused_in_one_sentence(lab: Lab, tmp_path: Path) -> None:
    folder = a_run(tmp_path / "old")
    (folder / "events.csv").unlink()
    done = lab.run("show", folder, "--as", "vllm")
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)


def a_run(folder: Path, tokens: int | None = 1) -> Path:
    """Write a run of two equal replies of three chunks, after 100 ms and then 12 ms apart."""
    arrivals = [(0.1, tokens), (0.112, tokens), (0.124, tokens)]
    parts = [stream(n, n * 1.0, arrivals, connect_s=0.002) for n in range(2)]
    ends = [
        {"request_id": n, "at_s": n + 0.15, "since_send_s": 0.15, "what": "done"} for n in range(2)
    ]
    load = load_rows((0.0, "measuring", 1, 1), (2.0, "done", 1, 0))
    return write_run(folder, **together(*parts), events=ends, load=load)


def line_of(table: str, label: str) -> list[str]:
    found = [line for line in table.splitlines() if line.startswith(label)]
    return found[0].removeprefix(label).split()


def table_of(folder: Path, tool: str) -> str:
    return beside(["batch 1"], [summarize(read(folder))], read_reports([folder], tool))


def test_only_the_words_that_a_tool_has_are_compared(tmp_path: Path) -> None:
    table = table_of(a_run(tmp_path / "run"), "aiperf")
    assert line_of(table, "TTFT mean, ms") == ["100", "102"]
    assert line_of(table, "TTFT p99, ms") == [NOTHING, "102"]
    assert line_of(table, "E2E mean, ms") == ["124", "126"]
    assert line_of(table, "ITL mean, ms") == ["12.0", "12.0"]
    assert line_of(table, "chunk gap n") == ["0", "4"]
    assert "TPOT" not in table


def test_our_chunk_gaps_stand_beside_the_tools_chunk_gaps(tmp_path: Path) -> None:
    table = table_of(a_run(tmp_path / "run", tokens=None), "aiperf")
    assert line_of(table, "chunk gap mean, ms") == ["12.0", "12.0"]
    assert "ITL" not in table


def test_without_a_tool_there_is_no_comparison(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    assert beside(["batch 1"], [summarize(read(folder))], read_reports([folder], None)) == ""
