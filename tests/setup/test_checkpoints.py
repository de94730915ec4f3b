import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from engine_launcher.environments import engine_folder, python_of
from engine_launcher.install.steps import make_checkpoint

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
PYTHON = python_of(engine_folder(ROOT))
ASKED = 32


def look_at(folder: Path, replies: int) -> dict[str, Any]:
    script = Path(__file__).with_name("look_at_checkpoint.py")
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    shown = subprocess.check_output(
        [PYTHON, script, folder, str(replies)], env=environment, cwd=ROOT
    )
    return json.loads(shown)


def config_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def make_tiny_lm(folder: Path) -> Path:
    make_checkpoint(PYTHON, "tiny_lm", folder, lambda _text: None)
    return folder


@pytest.fixture(scope="module")
def tiny_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_lm(tmp_path_factory.mktemp("checkpoints") / "tiny-lm")


@pytest.fixture(scope="module")
def tiny(tiny_lm: Path) -> dict[str, Any]:
    return look_at(tiny_lm, replies=100)


@pytest.fixture(scope="module")
def smollm2() -> Path:
    return ROOT / "checkpoints" / "SmolLM2-135M-Instruct"


def test_tiny_lm_has_the_shape_that_tensor_parallel_can_be_tried_on(
    tiny_lm: Path, tiny: dict[str, Any]
) -> None:
    config = config_of(tiny_lm)
    shape = {
        "model_type": "llama",
        "num_hidden_layers": 8,
        "hidden_size": 256,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "vocab_size": 8192,
        "max_position_embeddings": 8192,
        "dtype": "bfloat16",
    }
    assert {key: config[key] for key in shape} == shape
    assert tiny["parameters"] == 8_425_728


def test_every_id_of_tiny_lm_is_printable_text_of_its_own(tiny: dict[str, Any]) -> None:
    texts = tiny["texts"]
    assert len(texts) == 8192
    assert len(set(texts)) == 8192
    assert [text for text in texts if not text.isprintable() or not text.strip()] == []


def test_a_hundred_replies_of_tiny_lm_have_the_length_that_was_asked(tiny: dict[str, Any]) -> None:
    assert len(tiny["sampled"]) == 100
    assert {len(ids) for ids in tiny["sampled"]} == {ASKED}
    assert tiny["end"] not in {number for ids in tiny["sampled"] for number in ids}


def test_each_token_of_a_reply_streams_as_one_word(tiny: dict[str, Any]) -> None:
    for pieces in tiny["streamed"]:
        assert all(pieces)
        assert len("".join(pieces).split()) == ASKED


def test_replies_of_tiny_lm_differ(tiny: dict[str, Any]) -> None:
    assert len({tuple(ids) for ids in tiny["sampled"]}) == 100


def test_tiny_lm_comes_out_the_same_each_time(tiny_lm: Path, tmp_path: Path) -> None:
    again = make_tiny_lm(tmp_path / "tiny-lm")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        first, second = (sha256((each / name).read_bytes()) for each in (tiny_lm, again))
        assert first.hexdigest() == second.hexdigest()


def test_smollm2_has_the_shape_of_the_published_model(smollm2: Path) -> None:
    config = config_of(smollm2)
    shape = {
        "model_type": "llama",
        "num_hidden_layers": 30,
        "hidden_size": 576,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "vocab_size": 49152,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
    assert {key: config[key] for key in shape} == shape
    assert "quantization_config" not in config


def test_smollm2_writes_sentences(smollm2: Path) -> None:
    assert "Paris" in look_at(smollm2, replies=1)["likeliest"]
