import os
import shlex
import subprocess
from pathlib import Path

import pytest
from fakes.fake_environment import fake_checkpoint, fake_python

from engine_launcher import devices, engines
from engine_launcher.engines import cpu_binding, plan_launch, shell_line
from engine_launcher.settings import EngineSettings

HUB_ID = "someorg/some-model"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return fake_python(tmp_path / "env")


def command(python: Path, **changes: object) -> list[str]:
    settings = EngineSettings(**({"model": HUB_ID, "python": python} | changes))
    return list(plan_launch(settings, inherited={}).command)


def test_vllm_on_a_cpu_is_started_eagerly_with_kv_space_in_bytes(python: Path) -> None:
    assert command(python) == [
        str(python),
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "someorg/some-model",
        "--served-model-name",
        "tiny-lm",
        "--host",
        "127.0.0.1",
        "--port",
        "8000",
        "--max-model-len",
        "2048",
        "--enable-per-request-metrics",
        "--enable-prompt-tokens-details",
        "--enforce-eager",
        "--kv-cache-memory-bytes",
        "2147483648",
    ]


def test_vllm_with_everything_set(python: Path) -> None:
    words = command(
        python,
        max_model_len=512,
        tensor_parallel=2,
        dtype="bfloat16",
        kv_cache_gib=0.5,
        eager=False,
        extra_arguments="--seed 7 --chat-template 'a b.jinja'",
    )
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    assert words[words.index("--dtype") + 1] == "bfloat16"
    assert words[words.index("--kv-cache-memory-bytes") + 1] == str(2**29)
    assert "--enforce-eager" not in words
    assert words[-4:] == ["--seed", "7", "--chat-template", "a b.jinja"]


def test_what_is_left_to_the_engine_is_not_said(python: Path) -> None:
    words = command(python, max_model_len=None, served_name="")
    assert not {"--max-model-len", "--served-model-name", "--dtype"} & set(words)
    launch = plan_launch(EngineSettings(model=HUB_ID, python=python, served_name=""), inherited={})
    assert launch.served_model == HUB_ID


def test_the_cuda_build_gets_no_cpu_settings(tmp_path: Path) -> None:
    cuda = fake_python(tmp_path / "cuda", distribution="vllm")
    launch = plan_launch(EngineSettings(model=HUB_ID, python=cuda), inherited={})
    assert launch.version == "vllm 0.32.0"
    assert launch.device != "CPU"
    assert "--enforce-eager" not in launch.command
    assert "--kv-cache-memory-bytes" not in launch.command
    assert launch.notes == ()


def test_transformers_is_named_by_its_module_and_asked_by_the_path(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "env", distribution="transformers")
    model = fake_checkpoint(tmp_path / "m")
    settings = EngineSettings(kind="transformers", model=str(model), python=python, dtype="float32")
    launch = plan_launch(settings, inherited={})
    assert launch.command[1:4] == ("-m", "transformers.cli.transformers", "serve")
    assert launch.command[4:] == (
        *(str(model), "--host", "127.0.0.1", "--port", "8000", "--dtype", "float32"),
    )
    assert launch.served_model == str(model)
    assert launch.version == "transformers 0.32.0"


def test_eager_mode_on_a_cpu_is_said_only_where_the_lab_chose_it(python: Path) -> None:
    chosen = plan_launch(EngineSettings(model=HUB_ID, python=python), inherited={})
    asked = plan_launch(EngineSettings(model=HUB_ID, python=python, eager=True), inherited={})
    assert "Eager mode" in chosen.notes[0]
    assert asked.notes == ()


def test_the_child_has_its_own_bin_first_and_nothing_of_the_labs_libraries(python: Path) -> None:
    parent = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "QT_PLUGIN_PATH": "/qt",
        "PYTHONHOME": "/python",
        "PYTHONPATH": "/elsewhere",
        "LD_LIBRARY_PATH": "/lib",
        "VLLM_CPU_KVCACHE_SPACE": "40",
        "VIRTUAL_ENV": "/venv",
    }
    environment = plan_launch(
        EngineSettings(model=HUB_ID, python=python), "an-id", parent
    ).environment
    assert environment["PATH"] == f"{python.parent}:/usr/bin:/bin"
    assert environment["HOME"] == "/home/me"
    assert not set(parent) - {"PATH", "HOME"} & set(environment)
    assert environment["VLLM_NO_USAGE_STATS"] == "1"
    assert environment["SPT_NOENV"] == "1"
    assert environment[engines.ENGINE_ID] == "an-id"
    assert "HF_HUB_OFFLINE" not in environment


def test_only_a_model_on_disk_keeps_the_engine_from_the_hub(python: Path, tmp_path: Path) -> None:
    model = fake_checkpoint(tmp_path / "m")
    launch = plan_launch(EngineSettings(model=str(model), python=python), inherited={})
    assert launch.environment["HF_HUB_OFFLINE"] == "1"


def test_a_relative_path_is_given_whole(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_checkpoint(tmp_path / "checkpoints" / "m")
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path / "checkpoints" / "m") in command(python, model="checkpoints/m")


def test_the_persons_variables_win(python: Path) -> None:
    settings = EngineSettings(
        model=HUB_ID,
        python=python,
        environment={"VLLM_NO_USAGE_STATS": "0", "OMP_NUM_THREADS": "1"},
    )
    environment = plan_launch(settings, inherited={}).environment
    assert environment["VLLM_NO_USAGE_STATS"] == "0"
    assert environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("ranks", "cpus", "binding"),
    [
        (2, [0, 1], "0|1"),
        (2, [0, 1, 2, 3], "0,1|2,3"),
        (2, [4, 5, 6], "4|5"),
        (4, [0, 1], "0|1|0|1"),
    ],
)
def test_each_rank_gets_cpus_of_its_own_as_far_as_there_are_any(
    ranks: int, cpus: list[int], binding: str
) -> None:
    assert cpu_binding(ranks, cpus) == binding


def test_ranks_beyond_the_memory_nodes_are_bound_by_hand(python: Path) -> None:
    ranks = devices.numa_nodes() + 1
    launch = plan_launch(
        EngineSettings(model=HUB_ID, python=python, tensor_parallel=ranks), inherited={}
    )
    assert launch.variables["VLLM_CPU_OMP_THREADS_BIND"].count("|") == ranks - 1
    assert any("bound" in note for note in launch.notes)


@pytest.mark.parametrize(
    "typed", ["--api-key sesame", "--api-key=sesame", "--seed 1 --api-key sesame other --port 1"]
)
def test_an_api_key_reaches_the_engine_and_no_command_line(python: Path, typed: str) -> None:
    settings = EngineSettings(model=HUB_ID, python=python, extra_arguments=typed)
    launch = plan_launch(settings, inherited={})
    assert launch.environment["VLLM_API_KEY"] == "sesame"
    assert engines.api_key(settings) == "sesame"
    assert "sesame" not in " ".join(launch.command)
    assert "sesame" not in shell_line(launch)
    assert "VLLM_API_KEY=" in shell_line(launch)


def test_a_secret_variable_is_hidden_from_the_shown_line(python: Path) -> None:
    word = "sesame"
    settings = EngineSettings(model=HUB_ID, python=python, environment={"HF_TOKEN": word})
    launch = plan_launch(settings, inherited={})
    assert launch.environment["HF_TOKEN"] == word
    assert word not in shell_line(launch)


def test_the_key_of_an_attached_server_comes_from_the_environment() -> None:
    attached = EngineSettings(kind="attached", url="http://h")
    assert engines.api_key(attached, {"LATENCY_LAB_API_KEY": "k"}) == "k"
    assert engines.api_key(attached, {}) == ""
    assert engines.api_key(EngineSettings(), {"LATENCY_LAB_API_KEY": "k"}) == ""


def test_the_shown_line_runs_in_a_shell_as_the_lab_runs_it(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "env with blank")
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$HF_HUB_OFFLINE" "$@"\n')
    model = fake_checkpoint(tmp_path / "a model")
    launch = plan_launch(EngineSettings(model=str(model), python=python), inherited={})
    said = subprocess.check_output(
        ["/bin/sh", "-c", shell_line(launch)], text=True, env={"PATH": os.defpath}
    )
    assert said.splitlines() == ["1", *launch.command[1:]]
    assert shlex.split(shell_line(launch))[-len(launch.command) :] == list(launch.command)
