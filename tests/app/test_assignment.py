"""The assignment on the real engines, with the small model: started, measured, stopped."""

import json
from pathlib import Path

import psutil
import pytest
from fakes.fake_environment import unused_port
from lab_command import Lab
from waiting import wait_until

from app.places import find_places
from measurements.run_folder.reader import read

pytestmark = pytest.mark.engine

PLACES = find_places({})
LOAD = ("--concurrency", "1,8", "--requests", 24, "--max-tokens", 16, "--json")
LIMIT_S = 300.0


def family_of(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_an_engine_comes_up_is_measured_at_both_levels_and_leaves_nothing(
    tmp_path: Path, engine: str
) -> None:
    model = PLACES.checkpoints / "tiny-lm"
    where = ("--engine-python", PLACES.engine_python, "--port", unused_port())
    process = Lab(tmp_path).begin("measure", "--engine", engine, "--model", model, *where, *LOAD)
    family: set[psutil.Process] = set()

    def over() -> bool:
        family.update(family_of(process.pid))
        return process.poll() is not None

    wait_until(over, limit_s=LIMIT_S, every_s=0.2)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(family) >= 3  # supervisor, engine, load worker
    assert [child for child in family if child.is_running()] == []
    document = json.loads(out)
    assert document["kv_bytes"] == 8_388_608
    assert [level["concurrency"] for level in document["levels"]] == [1, 8]
    for level in document["levels"]:
        assert (level["requests"], level["failed"], level["ttft_s"]["n"]) == (24, 0, 24)
        assert level["ttft_s"]["mean"] > 0
        assert level["tpot_s"]["mean"] > 0
        assert level["output_tokens_per_s"] > 0
        assert read(Path(level["run_folder"])).warnings == ()


def test_a_killed_lab_leaves_no_process_of_a_real_engine_and_a_run_that_opens(
    tmp_path: Path,
) -> None:
    model = PLACES.checkpoints / "tiny-lm"
    where = ("--engine-python", PLACES.engine_python, "--port", unused_port())
    endless = ("--concurrency", 8, "--requests", 100_000)
    process = Lab(tmp_path).begin("measure", "--model", model, *where, *endless)

    def a_reply_has_ended() -> bool:
        assert process.poll() is None
        logs = list((tmp_path / "runs").glob("*/requests.csv"))
        return bool(logs) and logs[0].read_bytes().count(b"\n") > 1

    wait_until(a_reply_has_ended, limit_s=LIMIT_S, every_s=0.2)
    family = family_of(process.pid)
    assert any("VLLM" in child.name() for child in family)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(child.is_running() for child in family))
    (folder,) = (tmp_path / "runs").iterdir()
    run = read(folder)
    assert run.record["ended_by"] == "app gone"
    assert (run.requests["status"] == "ok").any()
    assert run.warnings == ()
