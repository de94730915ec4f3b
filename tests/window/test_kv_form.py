from dataclasses import replace

import pytest

from app.panels.kv_form import KvTyped, answer, plain_shape
from measurements.kv.arithmetic import KvLayout, KvShape, LayerGroup

SMOLLM2 = KvTyped(layers="30", kv_heads="3", head_dim="64", tokens="2048", batch="1", dtype="bf16")


def test_smollm2_at_2048_tokens_takes_47_185_920_bytes() -> None:
    found = answer(SMOLLM2)
    assert found.total == 47_185_920
    assert found.bytes_text == "47,185,920 bytes"
    assert found.gib_text == "0.04395 GiB"
    assert "2 × 30 layers × 3 KV heads × 64" in found.formula
    assert found.sentence == ""


@pytest.mark.parametrize("text", ["2,048", "2 048", "2_048", " 2048 "])
def test_thousands_may_be_separated(text: str) -> None:
    assert answer(replace(SMOLLM2, tokens=text)).total == 47_185_920


@pytest.mark.parametrize("text", ["", "0", "-1", "2.5", "many", "\uff11", "0x10", "1e3", "00000"])
@pytest.mark.parametrize("field", ["layers", "kv_heads", "head_dim", "tokens", "batch"])
def test_bad_input_gets_one_sentence(field: str, text: str) -> None:
    found = answer(replace(SMOLLM2, **{field: text}))
    assert found.total is None
    assert found.sentence.endswith(".")
    assert found.sentence.count(". ") == 0


def test_an_absurd_size_gets_one_sentence() -> None:
    found = answer(replace(SMOLLM2, layers="9" * 20))
    assert found.total is None
    assert found.sentence.endswith(".")


def test_a_plain_layout_is_three_numbers() -> None:
    shape = KvShape(layers=30, kv_heads=3, head_dim=64)
    assert plain_shape(shape.layout()) == {"layers": "30", "kv_heads": "3", "head_dim": "64"}


def test_a_layout_with_windows_is_not() -> None:
    group = LayerGroup(layers=5, kv_heads=2, k_dim=64, v_dim=64, window=512)
    assert plain_shape(KvLayout(groups=(group,))) is None


def test_a_layout_takes_the_place_of_the_shape() -> None:
    group = LayerGroup(layers=5, kv_heads=2, k_dim=64, v_dim=64, window=512)
    typed = replace(SMOLLM2, layers="", kv_heads="", head_dim="", layout=KvLayout(groups=(group,)))
    assert answer(typed).total == 5 * 2 * 128 * 512 * 2


def test_an_empty_field_is_called_empty() -> None:
    typed = KvTyped(layers="", kv_heads="3", head_dim="64", tokens="1", batch="1", dtype="bf16")
    assert answer(typed).sentence == "Layers is empty: type a whole number above 0."
