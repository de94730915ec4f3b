import os
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from measurements.plan import Load, Plan, Target
from measurements.run_folder.create import create, read_plan, safe_name, write_plan
from measurements.run_folder.errors import RunFolderError

MOMENT = datetime(2026, 12, 1, 14, 30, 0, tzinfo=UTC)
PLAN = Plan(
    target=Target(base_url="http://127.0.0.1:8000/v1", served_model="tiny-lm"),
    load=Load(concurrency=8),
    checkpoint="SmolLM2-135M-Instruct",
)


def test_a_folder_is_named_by_time_checkpoint_and_concurrency(tmp_path: Path) -> None:
    folder = create(tmp_path / "new" / "runs", "SmolLM2-135M-Instruct", 8, MOMENT)
    assert folder.is_dir()
    assert folder.name == "20261201T143000Z-SmolLM2-135M-Instruct-c8"


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    names = [create(tmp_path, "tiny-lm", 1, MOMENT).name for _ in range(3)]
    assert [name.removeprefix("20261201T143000Z-tiny-lm-c1") for name in names] == ["", "-2", "-3"]


def test_the_time_in_a_name_is_utc(tmp_path: Path) -> None:
    berlin = MOMENT.astimezone(timezone(timedelta(hours=1)))
    assert create(tmp_path, "tiny-lm", 1, berlin).name.startswith("20261201T143000Z")


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("HuggingFaceTB/SmolLM2-135M", "SmolLM2-135M"),
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\tiny lm", "tiny-lm"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("模型 v1", "v1"),
        ("a/b/", "b"),
        ("x\0y\nz", "x-y-z"),
    ],
)
def test_a_checkpoint_name_has_no_parts_of_a_path(checkpoint: str, name: str) -> None:
    assert safe_name(checkpoint) == name


def test_a_long_name_is_cut_to_what_a_file_system_takes(tmp_path: Path) -> None:
    assert len(create(tmp_path, "m" * 5000, 256, MOMENT).name) < 120


def test_a_file_in_the_place_of_the_folder_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(RunFolderError, match=r"runs: that is not a folder\. Choose a folder\.$"):
        create(tmp_path / "runs", "tiny-lm", 1)
    with pytest.raises(RunFolderError, match="not a folder"):
        create(tmp_path / "runs" / "deeper", "tiny-lm", 1)
    assert (tmp_path / "runs").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix" or not Path("/proc/self").exists(), reason="needs /proc")
def test_a_place_that_takes_no_folder_is_said_in_one_sentence() -> None:
    with pytest.raises(RunFolderError, match=r"Runs cannot be kept in /proc/self/runs: .*\. Choo"):
        create(Path("/proc/self/runs"), "tiny-lm", 1)


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_said_in_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunFolderError, match="Permission denied"):
        create(tmp_path, "tiny-lm", 1)


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_plan(tmp_path, PLAN)
    assert read_plan(tmp_path) == PLAN


def test_a_plan_is_never_written_over_another(tmp_path: Path) -> None:
    write_plan(tmp_path, PLAN)
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_plan(tmp_path, PLAN)


@pytest.mark.parametrize("content", [b"", b"{", b'{"load": 3}', b"[" * 100_000, b"\xff"])
def test_a_damaged_plan_is_said_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"plan\.json is not a plan"):
        read_plan(tmp_path)


def test_a_missing_plan_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"plan\.json cannot be read"):
        read_plan(tmp_path)
