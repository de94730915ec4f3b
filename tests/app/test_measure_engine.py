"""`latency-lab measure` with an engine of its own: the scheduled server in the place of vLLM."""

import json
import shlex
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest
from fakes.fake_environment import fake_checkpoint, fake_python, unused_port
from fakes.scheduled_server import TESTS
from lab_command import Lab
from waiting import wait_until

from measurements.run_folder.reader import read

STREAMING = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in --port) port="$2" ;; --served-model-name) model="$2" ;; esac
  shift
done
cd {folder} && exec {server} --port "$port" --model "$model" --script '{script}'
"""
LONG = ("--concurrency", "1,2", "--requests", 500, "--max-tokens", 500, "--warmup", 0)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "home")


def streaming_python(folder: Path, **script: object) -> Path:
    """An interpreter that passes for one with vLLM and runs the scheduled server."""
    python = fake_python(folder)
    server = shlex.join([sys.executable, "-m", "fakes.scheduled_server"])
    python.write_text(
        STREAMING.format(folder=shlex.quote(str(TESTS)), server=server, script=json.dumps(script))
    )
    return python


def engine_words(tmp_path: Path, python: Path) -> tuple[object, ...]:
    model = fake_checkpoint(tmp_path / "own-name", num_hidden_layers=2, hidden_size=64)
    return ("--model", model, "--engine-python", python, "--port", unused_port())


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    return engine_words(tmp_path, streaming_python(tmp_path / "env", ttft_ms=10, gap_ms=5))


def engine_pid(lab: Lab) -> int:
    """The pid that the engine's record on disk names; 0 before it is there."""
    for record in (lab.home / "engines").glob("*/*.json"):
        pid = json.loads(record.read_text(encoding="utf-8")).get("engine_pid")
        if pid:
            return pid
    return 0


def a_run_is_streaming(lab: Lab) -> bool:
    folders = list((lab.home / "runs").glob("*"))
    return bool(folders) and len(read(folders[0]).tokens["arrival_s"]) > 10


def test_an_engine_is_started_measured_and_stopped(lab: Lab, words: tuple[object, ...]) -> None:
    levels = ("--concurrency", "1,2", "--requests", 4, "--max-tokens", 8)
    done = lab.run("measure", *words, *levels, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [level["failed"] for level in document["levels"]] == [0, 0]
    assert document["model"] == "own-name"
    assert document["kv_bytes"] == 2 * 2 * 4 * 8 * 2048 * 2
    assert "stopping the engine" in done.stderr
    assert not psutil.pid_exists(engine_pid(lab))


def test_a_run_records_the_engine_that_it_was_measured_on(
    lab: Lab, words: tuple[object, ...]
) -> None:
    levels = ("--concurrency", 1, "--requests", 1, "--max-tokens", 2, "--json")
    document = json.loads(lab.run("measure", *words, *levels).stdout)
    folder = Path(document["levels"][0]["run_folder"])
    engine = read(folder).record["engine"]
    assert folder.name.endswith("-own-name-c1")
    assert engine["kind"] == "vllm"
    assert "--served-model-name tiny-lm" in engine["command_line"]
    assert engine["model"]["config"]["num_attention_heads"] == 8


def test_an_engine_that_dies_during_a_level_is_exit_code_3_and_what_was_measured_is_kept(
    lab: Lab, words: tuple[object, ...]
) -> None:
    process = lab.begin("measure", *words, *LONG, "--json")
    wait_until(lambda: a_run_is_streaming(lab))
    psutil.Process(engine_pid(lab)).kill()
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert process.returncode == document["exit_code"] == 3, err
    (level,) = document["levels"]
    assert level["completed"] < level["requests"] == 500
    assert len(read(Path(level["run_folder"])).tokens["arrival_s"]) > 10
    assert err.splitlines()[-1] == document["sentence"] != ""
    assert "Traceback" not in err


def test_an_engine_that_does_not_start_is_exit_code_3(lab: Lab, tmp_path: Path) -> None:
    python = fake_python(tmp_path / "env", "--pids", str(tmp_path / "pids"), "--exit", "1")
    done = lab.run("measure", *engine_words(tmp_path, python), "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["levels"] == []
    assert done.stderr.splitlines()[-1].endswith(".")


def test_an_engine_that_is_never_ready_is_given_up_at_the_limit(lab: Lab, tmp_path: Path) -> None:
    python = fake_python(tmp_path / "env", "--pids", str(tmp_path / "pids"), "--silent")
    done = lab.run("measure", *engine_words(tmp_path, python), "--start-limit", 1)
    assert done.returncode == 3
    assert "was not ready after 1 s" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_engine_starts_leaves_nothing(
    lab: Lab, tmp_path: Path, number: signal.Signals
) -> None:
    pids = tmp_path / "pids"
    python = fake_python(tmp_path / "env", "--pids", str(pids), "--clinging", "--deaf", "--silent")
    process = lab.begin("measure", *engine_words(tmp_path, python))
    wait_until(lambda: pids.is_file() and len(pids.read_text().split()) == 4)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not any(psutil.pid_exists(int(pid)) for pid in pids.read_text().split())


def test_an_interrupt_during_a_level_stops_run_and_engine(
    lab: Lab, words: tuple[object, ...]
) -> None:
    process = lab.begin("measure", *words, *LONG, "--json")
    wait_until(lambda: a_run_is_streaming(lab))
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(json.loads(out)["levels"]) == 1
    assert engine_pid(lab) in {child.pid for child in family}
    assert not any(child.is_running() for child in family)


def test_a_killed_app_takes_run_and_engine_with_it(lab: Lab, words: tuple[object, ...]) -> None:
    process = lab.begin("measure", *words, *LONG)
    wait_until(lambda: a_run_is_streaming(lab))
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(child.is_running() for child in family))
    (folder,) = (lab.home / "runs").iterdir()
    assert read(folder).record["state"] == "aborted"


def test_a_taken_port_is_refused_and_a_free_one_is_offered(
    lab: Lab, words: tuple[object, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lab.run("measure", *words[:-1], port)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Port {port} is taken" in done.stderr
    assert "is free" in done.stderr
