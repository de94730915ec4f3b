import socket
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.fake_environment import fake_checkpoint, fake_python, unused_port

from engine_launcher import devices
from engine_launcher.preflight import check, free_port
from engine_launcher.problems import Problem, Refusal
from engine_launcher.settings import EngineSettings


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    return EngineSettings(
        python=fake_python(tmp_path / "env"),
        model=str(fake_checkpoint(tmp_path / "model")),
        port=unused_port(),
        kv_cache_gib=0.5,
    )


def the_problem(settings: EngineSettings, **changes: object) -> Problem:
    (problem,) = check(replace(settings, **changes))
    assert problem.sentence.endswith(".")
    return problem


def offered(problem: Problem) -> object:
    (offer,) = problem.offers
    assert offer.setting == problem.field
    assert str(offer.value) in offer.label
    return offer.value


def test_sound_settings_have_no_problem(settings: EngineSettings) -> None:
    assert check(settings) == ()


def test_a_taken_port_is_said_with_its_owner_and_a_free_one(settings: EngineSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        problem = the_problem(settings, port=taken)
        assert problem.field == "port"
        assert f"Port {taken} is taken by" in problem.sentence
        assert "pid" in problem.sentence
        assert str(offered(problem)) in problem.sentence
        assert check(replace(settings, port=offered(problem))) == ()


def test_a_port_that_is_taken_on_all_addresses_is_taken(settings: EngineSettings) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert the_problem(settings, port=server.getsockname()[1]).field == "port"


def test_connections_of_the_last_engine_do_not_take_the_port(settings: EngineSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the server's side lingers in TIME_WAIT
        client.close()
    assert check(replace(settings, port=port)) == ()


def test_a_foreign_address_is_no_host(settings: EngineSettings) -> None:
    assert offered(the_problem(settings, host="192.0.2.1")) == "127.0.0.1"
    assert the_problem(settings, host="no.such.host.invalid").field == "host"


def test_a_free_port_is_above_the_taken_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert free_port("127.0.0.1", taken - 1) != taken
    assert free_port("127.0.0.1", 65535) is None


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("", "Choose a model"),
        ("./no/such/folder", "There is no model at"),
        ("/no/such/folder", "There is no model at"),
        ("~/no/such/folder", "There is no model at"),
    ],
)
def test_a_model_that_is_missing(settings: EngineSettings, model: str, words: str) -> None:
    problem = the_problem(settings, model=model)
    assert problem.field == "model"
    assert words in problem.sentence


def test_a_misspelt_folder_is_a_path_and_not_an_id(
    settings: EngineSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkpoints").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "There is no model at" in the_problem(settings, model="checkpoints/tiny-lx").sentence


def test_a_hub_id_is_left_to_the_engine(settings: EngineSettings) -> None:
    assert check(replace(settings, model="someorg/some-model")) == ()


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("config.json", "no config.json"),
        ("tokenizer.json", "no tokenizer"),
        ("model.safetensors", "no weights"),
    ],
)
def test_a_folder_that_lacks_a_part(settings: EngineSettings, lost: str, words: str) -> None:
    (Path(settings.model) / lost).unlink()
    assert words in the_problem(settings).sentence


@pytest.mark.parametrize("content", ["{", "[1, 2]", "7", '{"text_config": 3}'])
def test_a_config_that_is_none(settings: EngineSettings, content: str) -> None:
    (Path(settings.model) / "config.json").write_text(content)
    assert "cannot be read" in the_problem(settings).sentence


def test_a_file_is_no_checkpoint(settings: EngineSettings) -> None:
    file = Path(settings.model) / "model.safetensors"
    assert "is a file" in the_problem(settings, model=str(file)).sentence


def test_a_tokenizer_and_weights_may_come_from_elsewhere(settings: EngineSettings) -> None:
    for name in ("tokenizer.json", "model.safetensors"):
        (Path(settings.model) / name).unlink()
    elsewhere = "--tokenizer other --load-format dummy"
    assert check(replace(settings, extra_arguments=elsewhere)) == ()


def test_a_missing_interpreter_and_one_without_vllm(
    settings: EngineSettings, tmp_path: Path
) -> None:
    missing = the_problem(settings, python=tmp_path / "nowhere" / "bin" / "python")
    assert "make engine" in missing.sentence
    other = fake_python(tmp_path / "other", distribution="something_else")
    assert "has no vllm" in the_problem(settings, python=other).sentence


@pytest.mark.parametrize(
    ("heads", "ranks", "possible", "offer"),
    [(28, 8, "1, 2, 4, 7, 14, 28", 7), (9, 2, "1, 3, 9", 1), (8, 3, "1, 2, 4, 8", 2)],
)
def test_ranks_that_do_not_divide_the_heads(
    settings: EngineSettings, heads: int, ranks: int, possible: str, offer: int
) -> None:
    fake_checkpoint(Path(settings.model), num_attention_heads=heads)
    problem = the_problem(settings, tensor_parallel=ranks)
    assert problem.field == "tensor_parallel"
    assert f"take {possible}." in problem.sentence
    assert offered(problem) == offer


def test_ranks_that_divide_the_heads_pass_on_a_cpu(settings: EngineSettings) -> None:
    assert check(replace(settings, tensor_parallel=4)) == ()


def test_more_ranks_than_gpus(
    settings: EngineSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho GPU A\necho GPU A\n")
    (tools / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    devices.nvidia_gpus.cache_clear()
    cuda = fake_python(tmp_path / "cuda", distribution="vllm")
    problem = the_problem(settings, python=cuda, tensor_parallel=4)
    devices.nvidia_gpus.cache_clear()
    assert "this machine has 2 GPUs: take 1, 2." in problem.sentence
    assert offered(problem) == 2


def test_the_generate_loop_has_one_rank(settings: EngineSettings, tmp_path: Path) -> None:
    python = fake_python(tmp_path / "hf", distribution="transformers")
    problem = the_problem(settings, kind="transformers", python=python, tensor_parallel=2)
    assert offered(problem) == 1


def test_a_length_above_the_models_offers_the_models(settings: EngineSettings) -> None:
    problem = the_problem(settings, max_model_len=16384)
    assert offered(problem) == 4096
    assert "VLLM_ALLOW" not in problem.sentence


def test_a_length_that_scaling_stretches_is_left_to_the_engine(settings: EngineSettings) -> None:
    fake_checkpoint(Path(settings.model), rope_parameters={"rope_type": "yarn", "factor": 4.0})
    assert check(replace(settings, max_model_len=16384)) == ()


def test_the_language_part_of_a_model_with_eyes_counts(settings: EngineSettings) -> None:
    fake_checkpoint(Path(settings.model), text_config={"num_attention_heads": 6})
    assert offered(the_problem(settings, tensor_parallel=4)) == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", 0),
        ("port", 70000),
        ("port", "eighty"),
        ("max_model_len", 0),
        ("max_model_len", -5),
        ("max_model_len", "many"),
        ("max_model_len", 10**12),
        ("tensor_parallel", 0),
        ("tensor_parallel", 1.5),
        ("tensor_parallel", True),
        ("kv_cache_gib", 0.0),
        ("kv_cache_gib", float("nan")),
        ("kv_cache_gib", 1e9),
        ("start_limit_s", -1.0),
        ("stop_grace_s", float("inf")),
        ("dtype", "float12"),
        ("extra_arguments", "--chat-template 'open"),
        ("extra_arguments", "--seed 1 --port 9"),
        ("extra_arguments", "--port=9"),
        ("extra_arguments", "--served-model-name other"),
    ],
)
def test_an_absurd_value_names_its_field(
    settings: EngineSettings, field: str, value: object
) -> None:
    assert the_problem(settings, **{field: value}).field == field


def test_several_problems_are_said_together(settings: EngineSettings) -> None:
    wrong = replace(settings, dtype="float12", max_model_len=16384)
    assert [problem.field for problem in check(wrong)] == ["dtype", "max_model_len"]
    refusal = Refusal(check(wrong))
    assert "float12" in str(refusal)
    assert "16384" in str(refusal)


def test_attaching_needs_a_url_and_nothing_else() -> None:
    assert check(EngineSettings(kind="attached", url="http://h:1")) == ()
    assert the_problem(EngineSettings(kind="attached"), url="ftp://h").field == "url"
