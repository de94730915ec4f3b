"""`latency-lab measure --url` against the scheduled server, as a process of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from fakes.scheduled_server import ScheduledServer
from lab_command import Lab, assert_one_sentence
from waiting import wait_until

from measurements.run_folder.reader import Run, read

QUICK = ("--requests", 4, "--max-tokens", 8, "--warmup", 1)
ENDLESS = ("--requests", 1000, "--max-tokens", 1000, "--warmup", 0)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "home")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScheduledServer]:
    with ScheduledServer(tmp_path, ttft_ms=60, gap_ms=10) as running:
        yield running


def run_folders(lab: Lab) -> list[Path]:
    runs = lab.home / "runs"
    return sorted(runs.iterdir(), key=lambda path: path.name) if runs.is_dir() else []


def sent_by(server: ScheduledServer, run: Run) -> list[dict[str, Any]]:
    """The server's own account of the run's counted replies."""
    counted = set(run.requests["response_id"][run.requests["warmup"] == 0])
    return [entry for entry in server.send_log() if entry["response_id"] in counted]


def test_both_levels_are_measured_as_the_server_sent_them(
    lab: Lab, server: ScheduledServer
) -> None:
    done = lab.run("measure", "--url", server.url, "--concurrency", "1,4", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [level["concurrency"] for level in document["levels"]] == [1, 4]
    for level in document["levels"]:
        sent = sent_by(server, read(Path(level["run_folder"])))
        ttft = np.mean([(e["sent_ns"][0] - e["received_ns"]) / 1e9 for e in sent])
        gaps = np.concatenate([np.diff(e["sent_ns"]) / 1e9 for e in sent])
        assert (level["requests"], level["failed"], len(sent)) == (4, 0, 4)
        assert level["ttft_s"]["n"] == 4
        assert level["ttft_s"]["mean"] == pytest.approx(ttft, abs=0.02)
        assert level["itl_s"]["n"] == len(gaps) == 28
        assert level["itl_s"]["mean"] == pytest.approx(gaps.mean(), abs=0.002)
        assert level["tpot_s"]["mean"] == pytest.approx(gaps.mean(), abs=0.002)
        assert level["ttft_s"]["p99"] is None
        assert level["output_tokens_per_s"] > 0


def test_the_table_has_both_levels_and_where_their_logs_lie(
    lab: Lab, server: ScheduledServer
) -> None:
    done = lab.run("measure", "--url", server.url, "--concurrency", "1,4", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "batch 1" in done.stdout
    assert "batch 4" in done.stdout
    assert all(str(folder) in done.stdout for folder in run_folders(lab))
    assert "concurrency 4" in done.stderr


def test_the_model_of_an_attached_server_may_be_named_for_its_cache(
    lab: Lab, server: ScheduledServer, tmp_path: Path
) -> None:
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
    config = {"model_type": "llama", "dtype": "bfloat16", **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ("--concurrency", 1, *QUICK, "--json", "--model", tmp_path)
    document = json.loads(lab.run("measure", "--url", server.url, *words).stdout)
    assert document["kv_bytes"] == 2 * 2 * 4 * 16 * 2048 * 2


def test_the_default_is_sixteen_requests_or_two_a_stream(lab: Lab, tmp_path: Path) -> None:
    with ScheduledServer(tmp_path, ttft_ms=1, gap_ms=0) as server:
        words = ("--concurrency", "1,12", "--max-tokens", 2, "--json")
        document = json.loads(lab.run("measure", "--url", server.url, *words).stdout)
    assert [level["requests"] for level in document["levels"]] == [16, 24]


def test_a_rate_is_one_level_without_a_cap_in_its_way(lab: Lab, server: ScheduledServer) -> None:
    words = ("--rate", 40, "--arrival", "poisson", "--seed", 5, *QUICK, "--json")
    done = lab.run("measure", "--url", server.url, *words)
    assert done.returncode == 0, done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert (level["rate"], level["concurrency"], level["completed"]) == (40.0, 256, 4)
    assert level["from_plan_s"]["mean"] >= level["e2e_s"]["mean"]
    plan = read(Path(level["run_folder"])).record["plan"]
    assert (plan["load"]["arrival"], plan["load"]["seed"], plan["prompts"]["seed"]) == (
        "poisson",
        5,
        5,
    )


def test_a_level_by_time_is_complete_with_what_the_time_held(
    lab: Lab, server: ScheduledServer
) -> None:
    words = ("--rate", 20, "--duration", 0.5, "--max-tokens", 3, "--warmup", 0, "--json")
    done = lab.run("measure", "--url", server.url, *words)
    assert done.returncode == 0, done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert (level["requests"], level["completed"]) == (None, 10)


def test_a_rate_that_the_cap_held_back_is_measured_less(lab: Lab, server: ScheduledServer) -> None:
    words = ("--rate", 100, "--duration", 0.5, "--concurrency", 1, "--max-tokens", 3, "--json")
    done = lab.run("measure", "--url", server.url, *words)
    assert done.returncode == 1, done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert level["completed"] + level["cancelled"] == 50
    assert level["cancelled"] > 0
    assert level["failed"] == 0
    (mark,) = [mark for mark in level["marks"] if "never sent" in mark]
    assert mark.startswith(f"{level['cancelled']} requests were due and never sent: no more than 1")


@pytest.mark.parametrize("words", [("--shared-prefix",), ("--prompts", "shared")])
def test_a_shared_prefix_is_asked_for_and_then_said(
    lab: Lab, server: ScheduledServer, words: tuple[str, ...]
) -> None:
    done = lab.run("measure", "--url", server.url, "--concurrency", 1, *QUICK, *words)
    assert done.returncode == 0, done.stderr
    said = "Batch 1: Prompts without a unique prefix, 4 different in 4 requests: the server does"
    assert said in done.stdout
    heads = {entry["prompt"][:400] for entry in server.send_log() if len(entry["prompt"]) > 400}
    assert len(heads) == 1


def test_the_seed_repeats_prompts_and_schedule(lab: Lab, server: ScheduledServer) -> None:
    words = ("--rate", 100, "--arrival", "poisson", "--seed", 9, *QUICK, "--json")
    runs = []
    for _ in range(2):
        document = json.loads(lab.run("measure", "--url", server.url, *words).stdout)
        runs.append(read(Path(document["levels"][0]["run_folder"])))
    first, again = (run.sends for run in runs)
    assert list(first["prompt_id"]) == list(again["prompt_id"])
    gaps = [np.diff(sends["planned_s"][sends["warmup"] == 0]) for sends in (first, again)]
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-8)


def test_a_level_with_failures_is_measured_less(
    lab: Lab, server: ScheduledServer, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.txt"
    refused = json.dumps({"script": {"status": 503, "ttft_ms": 1}})
    prompts.write_text(f"a good one\nplease {refused}\n", encoding="utf-8")
    words = ("--concurrency", 1, *QUICK, "--prompts", prompts, "--json")
    done = lab.run("measure", "--url", server.url, *words)
    assert done.returncode == 1, done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert level["failed"] >= 1
    assert level["completed"] + level["failed"] == 4
    assert "503" in " ".join(level["failures"])


def test_a_server_that_dies_during_a_level_leaves_what_was_measured(
    lab: Lab, server: ScheduledServer
) -> None:
    process = lab.begin("measure", "--url", server.url, "--concurrency", 1, "--requests", 6)
    wait_until(lambda: len(server.send_log()) > 4)
    server.stop()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "requests failed" in out
    assert "Traceback" not in err


def test_a_url_where_nothing_answers_is_an_engine_failure(lab: Lab) -> None:
    done = lab.run("measure", "--url", "http://127.0.0.1:9")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith(".")
    assert run_folders(lab) == []


def interrupted(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """Send a signal and return stderr; everything that the app started has to be gone."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert [child for child in family if child.is_running()] == []
    assert "Traceback" not in err
    return err


def a_run_is_streaming(lab: Lab) -> bool:
    folders = run_folders(lab)
    return bool(folders) and len(read(folders[0]).tokens["arrival_s"]) > 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_measurement_is_finished_in_order(
    lab: Lab, server: ScheduledServer, number: signal.Signals
) -> None:
    process = lab.begin("measure", "--url", server.url, *ENDLESS)
    wait_until(lambda: a_run_is_streaming(lab))
    err = interrupted(process, number)
    assert process.returncode == 130
    assert "Interrupted" in err
    (folder,) = run_folders(lab)
    run = read(folder)
    assert (run.record["state"], run.record["ended_by"]) == ("done", "hand")
    assert len(run.tokens["arrival_s"]) > 3


def test_an_interrupt_while_connecting_ends_at_once(lab: Lab, tmp_path: Path) -> None:
    with ScheduledServer(tmp_path, end="stall", chunks=0) as silent:
        process = lab.begin("measure", "--url", silent.url)
        wait_until(lambda: psutil.Process(process.pid).children())
        interrupted(process, signal.SIGINT)
    assert process.returncode == 130
    assert run_folders(lab) == []


def test_a_killed_app_leaves_a_whole_folder_and_no_worker(
    lab: Lab, server: ScheduledServer
) -> None:
    process = lab.begin("measure", "--url", server.url, *ENDLESS)
    wait_until(lambda: a_run_is_streaming(lab))
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(child.is_running() for child in family))
    (folder,) = run_folders(lab)
    run = read(folder)
    assert (run.record["state"], run.record["ended_by"]) == ("aborted", "app gone")
    assert run.warnings == ()


@pytest.mark.parametrize(
    "words",
    [
        ("--concurrency", "0,x"),
        ("--requests", 0),
        ("--max-tokens", "many"),
        ("--max-tokens", 4096),
        ("--temperature", 3),
        ("--engine", "vlm"),
        ("--engine", "vllm", "--url", "http://127.0.0.1:9"),
        ("--url", "ftp://127.0.0.1"),
        ("--prompts", "no-such-set"),
        ("--prompts", "missing.jsonl"),
        ("--dtype", "int3"),
        ("--port", 70000),
        ("--rate", 0),
        ("--rate", "fast"),
        ("--arrival", "poisson"),
        ("--rate", 1, "--arrival", "uniform"),
        ("--duration", 0),
        ("--seed", -1),
        ("--timeout", 0),
        ("--input-tokens", 0),
        ("--input-tokens", 100, "--prompts", "short"),
        ("--input-tokens", 2000, "--max-tokens", 64),
        ("--bogus",),
        (),  # the default model is not in this home
    ],
)
def test_bad_input_is_refused_in_one_sentence_before_anything_starts(
    lab: Lab, words: tuple[object, ...]
) -> None:
    done = lab.run("measure", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
    assert run_folders(lab) == []


def test_what_the_engine_would_stumble_over_is_said_before_it_starts(lab: Lab) -> None:
    done = lab.run("measure", "--model", "./missing", "--engine-python", "nowhere/python")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere/python" in done.stderr
    assert "no model at" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_place_where_runs_cannot_be_kept_is_refused(
    lab: Lab, server: ScheduledServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = lab.run("measure", "--url", server.url, "--out", tmp_path / "file")
    assert done.returncode == 2
    assert_one_sentence(done.stderr)


def test_the_missing_default_model_is_said_with_the_remedy(lab: Lab) -> None:
    assert "make models" in lab.run("measure").stderr


def test_a_reader_that_has_left_is_no_error(lab: Lab) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "kv", "--layers", "1", "--kv-heads", "1", "--head-dim", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, "")


def test_an_unknown_command_is_refused_in_one_sentence(lab: Lab) -> None:
    done = lab.run("mesure")
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
