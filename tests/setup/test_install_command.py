import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_launcher.checkpoints.publish import publish
from engine_launcher.checkpoints.tiny_lm import RECIPE

ROOT = Path(__file__).parents[2]
LIMIT_S = 60


def begin(project: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "engine_launcher.install", "--project", str(project), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)


def run(project: Path, *words: str) -> tuple[int, str, str]:
    with begin(project, *words) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def a_made_checkpoint(project: Path) -> Path:
    folder = project / "checkpoints" / "tiny-lm"
    assert publish(folder, RECIPE, lambda scratch: (scratch / "config.json").touch())
    return folder


def test_a_step_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    a_made_checkpoint(tmp_path)
    code, out, err = run(tmp_path, "tiny-lm")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "[2/2] checkpoint tiny-lm: ready"


def test_a_missing_engine_environment_is_said_in_one_sentence(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "tiny-lm")
    assert code == 1
    assert err == "tiny-lm is made by the engine's environment: make engine first.\n"


def test_an_unknown_step_is_refused(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "everything")
    assert code == 2
    assert "everything" in err


def test_a_second_installation_waits_for_the_first(tmp_path: Path) -> None:
    a_made_checkpoint(tmp_path)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with begin(tmp_path, "tiny-lm") as process:
        assert process.stdout is not None
        waiting = process.stdout.readline()
        os.close(handle)
        out, _ = process.communicate(timeout=LIMIT_S)
    assert waiting == "Another installation is at work here; waiting for it …\n"
    assert process.returncode == 0
    assert "ready" in out


def test_a_checkpoint_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def cut_off(scratch: Path) -> None:
        (scratch / "config.json").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "tiny-lm", RECIPE, cut_off)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_recipe_is_made_anew(tmp_path: Path) -> None:
    folder = a_made_checkpoint(tmp_path)
    assert publish(folder, "another", lambda scratch: (scratch / "new").touch())
    assert not (folder / "config.json").exists()
    assert not publish(folder, "another", lambda scratch: (scratch / "newer").touch())


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-lm"
    folder.mkdir()
    (folder / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match="was not made by the lab: move it away"):
        publish(folder, RECIPE, lambda _scratch: None)
    assert (folder / "thesis.txt").exists()
