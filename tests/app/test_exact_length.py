"""Prompts and replies of an exact length on a real vLLM, by its own count."""

import json
from pathlib import Path

import numpy as np
import pytest
from fakes.fake_environment import unused_port
from lab_command import Lab

from app.places import find_places
from measurements.run_folder.reader import read

pytestmark = pytest.mark.engine

PLACES = find_places({})
LIMIT_S = 300.0


def test_each_request_has_the_asked_prompt_and_reply_at_the_planned_moment(tmp_path: Path) -> None:
    model = PLACES.checkpoints / "tiny-lm"
    if not (PLACES.engine_python.exists() and model.exists()):
        pytest.skip("needs `make engine` and checkpoints/tiny-lm")
    engine = ("--model", model, "--engine-python", PLACES.engine_python, "--port", unused_port())
    load = ("--rate", 10, "--requests", 20, "--max-tokens", 12, "--ignore-eos", "--seed", 1)
    words = ("measure", *engine, *load, "--input-tokens", 200, "--max-model-len", 512, "--json")
    done = Lab(tmp_path).run(*words, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    run = read(Path(level["run_folder"]))
    requests, sends = run.requests, run.sends
    assert set(requests["prompt_tokens"]) == {200.0}
    assert set(requests["output_tokens"]) == {12.0}
    planned = sends["planned_s"][sends["warmup"] == 0]
    assert np.diff(planned) == pytest.approx(0.1)
    assert np.all(sends["sent_s"] >= sends["planned_s"])
    assert level["from_plan_s"]["n"] == 20
