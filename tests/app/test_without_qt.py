"""The commands where Qt is not installed: site-packages of links, without PySide6 and pyqtgraph."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.scheduled_server import ScheduledServer
from lab_command import Lab, assert_one_sentence

import app

QT = ("pyside6", "shiboken6", "pyqtgraph", "pytest_qt", "pytestqt")


@pytest.fixture(scope="module")
def bare_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PYTHONPATH that has all that is installed but Qt."""
    folder = tmp_path_factory.mktemp("without-qt")
    for item in Path(np.__file__).parents[1].iterdir():
        if not item.name.lower().startswith(QT) and item.suffix != ".pth":
            (folder / item.name).symlink_to(item)
    return os.pathsep.join([str(folder), str(Path(app.__file__).parents[1])])


@pytest.fixture
def lab(tmp_path: Path, bare_path: str) -> Lab:
    variables = (("PYTHONPATH", bare_path), ("QT_QPA_PLATFORM", "offscreen"))
    return Lab(tmp_path / "home", interpreter=(sys.executable, "-S"), variables=variables)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScheduledServer]:
    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=2) as running:
        yield running


@pytest.mark.parametrize("module", ["PySide6", "shiboken6", "pyqtgraph"])
def test_qt_is_really_absent_here(bare_path: str, module: str) -> None:
    command = [sys.executable, "-S", "-c", f"import {module}"]
    done = subprocess.run(
        command, env={"PYTHONPATH": bare_path}, capture_output=True, text=True, check=False
    )
    assert f"No module named '{module}'" in done.stderr


def test_a_server_is_measured_and_its_runs_are_listed_shown_and_exported(
    lab: Lab, server: ScheduledServer, tmp_path: Path
) -> None:
    words = ("--concurrency", "1,2", "--requests", 2, "--max-tokens", 4, "--json")
    done = lab.run("measure", "--url", server.url, *words)
    assert done.returncode == 0, done.stderr
    names = [Path(level["run_folder"]).name for level in json.loads(done.stdout)["levels"]]
    assert all(name in lab.run("runs").stdout for name in names)
    assert "TTFT mean" in lab.run("show", *names).stdout
    assert lab.run("export", *names, "--to", tmp_path / "out.csv").returncode == 0
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").count("\n") > 4


def test_the_cache_is_computed(lab: Lab) -> None:
    done = lab.run("kv", "--layers", 30, "--kv-heads", 3, "--head-dim", 64)
    assert "47,185,920 bytes" in done.stdout


def test_the_window_is_refused_in_one_sentence(lab: Lab) -> None:
    done = lab.run()
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
    assert "make run" in done.stderr


def test_the_window_is_refused_where_there_is_no_display(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = Lab(lab.home, variables=(("QT_QPA_PLATFORM", ""),)).run()
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
    assert "latency-lab measure" in done.stderr
