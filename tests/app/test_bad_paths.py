"""Paths that cannot even be looked at are said in one sentence."""

from pathlib import Path

import pytest
from lab_command import Lab, assert_one_sentence

LONG = "/" + "a" * 5000
NOBODY = "~no-such-user/x"


@pytest.mark.parametrize("path", [LONG, NOBODY], ids=["too long", "no such user"])
@pytest.mark.parametrize(
    "words",
    [
        ("measure", "--model"),
        ("measure", "--engine-python"),
        ("measure", "--prompts"),
        ("kv", "--model"),
        ("show",),
    ],
    ids=" ".join,
)
def test_a_path_that_makes_no_sense_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...], path: str
) -> None:
    done = Lab(tmp_path / "home").run(*words, path)
    assert done.returncode == 2
    assert_one_sentence(done.stderr)


def test_a_destination_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    done = Lab(tmp_path / "home").run("measure", "--url", "http://127.0.0.1:1", "--out", LONG)
    assert done.returncode == 2
    assert_one_sentence(done.stderr)


def test_a_home_of_nobody_is_a_folder_of_that_name(tmp_path: Path) -> None:
    done = Lab(Path(NOBODY)).run("runs")
    assert (done.returncode, done.stderr) == (0, "")
