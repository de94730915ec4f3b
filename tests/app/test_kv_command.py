import json
from pathlib import Path

import pytest
from lab_command import Lab, assert_one_sentence

SMOLLM2 = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "num_attention_heads": 9,
    "hidden_size": 576,
    "head_dim": 64,
    "dtype": "bfloat16",
}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "home")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "SmolLM2"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SMOLLM2), encoding="utf-8")
    return folder


def test_a_model_answers_with_its_arithmetic(lab: Lab, model: Path) -> None:
    done = lab.run("kv", "--model", model)
    assert done.returncode == 0
    assert "30 layers × 3 KV heads × 64 × 2,048 tokens × 2 bytes" in done.stdout
    assert "47,185,920 bytes" in done.stdout
    assert "0.0439453 GiB" in done.stdout


def test_sizes_by_hand_answer_the_same(lab: Lab, model: Path) -> None:
    sizes = ("--layers", 30, "--kv-heads", 3, "--head-dim", 64)
    by_hand = json.loads(lab.run("kv", *sizes, "--json").stdout)
    assert by_hand == json.loads(lab.run("kv", "--model", model, "--json").stdout)
    assert by_hand["bytes"] == 47_185_920
    assert by_hand["gib"] == 47_185_920 / 2**30


def test_dtype_batch_and_length_multiply(lab: Lab, model: Path) -> None:
    options = ("--dtype", "float32", "--batch", 8, "--tokens", 4096, "--json")
    assert json.loads(lab.run("kv", "--model", model, *options).stdout)["bytes"] == (
        47_185_920 * 2 * 8 * 2
    )


def test_a_model_id_is_found_in_the_cache(tmp_path: Path, model: Path) -> None:
    snapshot = tmp_path / "hub" / "models--someone--SmolLM2" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (model / "config.json").rename(snapshot / "config.json")
    lab = Lab(tmp_path, variables=(("HF_HUB_CACHE", str(tmp_path / "hub")),))
    done = lab.run("kv", "--model", "someone/SmolLM2", "--json")
    assert json.loads(done.stdout)["bytes"] == 47_185_920


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--layers", 30),
        ("--layers", 0, "--kv-heads", 3, "--head-dim", 64),
        ("--layers", "many", "--kv-heads", 3, "--head-dim", 64),
        ("--layers", 10**12, "--kv-heads", 10**12, "--head-dim", 10**12, "--tokens", 10**12),
        ("--model", "nowhere"),
        ("--model", "nowhere", "--layers", 2),
        ("--model", "nowhere", "--dtype", "int3"),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(lab: Lab, words: tuple[object, ...]) -> None:
    done = lab.run("kv", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_sentence(done.stderr)
