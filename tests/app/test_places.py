from pathlib import Path

import pytest

import app
from app.places import find_places, places_in


def test_the_home_variable_decides(tmp_path: Path) -> None:
    assert find_places({"LATENCY_LAB_HOME": str(tmp_path)}) == places_in(tmp_path)


def test_a_home_below_the_working_directory_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_places({"LATENCY_LAB_HOME": "lab"}).root == tmp_path / "lab"


def test_a_blank_home_variable_counts_as_none() -> None:
    assert find_places({"LATENCY_LAB_HOME": " "}) == find_places({})


def test_an_editable_install_keeps_its_things_in_the_repository() -> None:
    repository = Path(app.__file__).parents[1]
    places = find_places({})
    assert places.root == repository
    assert places.runs == repository / "runs"
    assert places.engines == repository / "engines"
    assert places.engine_python == repository / ".venv-engine" / "bin" / "python"
    assert places.default_model == repository / "checkpoints" / "SmolLM2-135M-Instruct"


def test_a_plain_install_keeps_them_with_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.places.__file__", str(tmp_path / "site-packages/app/places.py"))
    monkeypatch.setattr("sys.platform", "linux")
    places = find_places({"XDG_DATA_HOME": str(tmp_path / "data")})
    assert places.root == tmp_path / "data" / "latency-lab"
