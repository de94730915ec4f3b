import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements.kv.arithmetic import (
    DTYPE_BYTES,
    KvError,
    KvLayout,
    KvShape,
    LayerGroup,
    StateGroup,
    bytes_per_sequence,
    bytes_per_token,
    bytes_per_token_within_window,
    formula,
    plain_shape,
    state_bytes,
    total_bytes,
)

SMOLLM2 = KvShape(layers=30, kv_heads=3, head_dim=64).layout()
MIXED = KvLayout(
    groups=(
        LayerGroup(layers=2, kv_heads=4, k_dim=8, v_dim=8),
        LayerGroup(name="sliding window", layers=10, kv_heads=4, k_dim=8, v_dim=8, window=100),
    )
)


def test_smollm2_at_2048_tokens_in_bf16_takes_47185920_bytes() -> None:
    assert total_bytes(SMOLLM2, 2048, "bf16") == 47_185_920
    assert bytes_per_token(SMOLLM2, "bf16") == 23_040


@pytest.mark.parametrize(("dtype", "size"), [("fp32", 4), ("fp16", 2), ("bf16", 2), ("fp8", 1)])
def test_the_dtype_is_a_factor(dtype: str, size: int) -> None:
    assert DTYPE_BYTES[dtype] == size
    assert bytes_per_sequence(SMOLLM2, 1, dtype) == 2 * 30 * 3 * 64 * size


def test_the_formula_has_the_numbers_in_it() -> None:
    assert (
        formula(SMOLLM2, 2048, "bf16")
        == "2 × 30 layers × 3 KV heads × 64 × 2,048 tokens × 2 bytes × 1 = 47,185,920 bytes"
    )
    assert "× 1 byte × 8 =" in formula(SMOLLM2, 1, "fp8", batch=8)


def test_the_formula_of_a_mixed_model_has_a_line_a_group() -> None:
    first, second = formula(MIXED, 1000, "fp8").split("\n")
    assert first == "2 × 2 layers × 4 KV heads × 8 × 1,000 tokens × 1 byte × 1"
    assert second == "+ 2 × 10 layers × 4 KV heads × 8 × 100 tokens × 1 byte × 1 = 192,000 bytes"


def test_the_formula_of_latent_attention_has_no_factor_two() -> None:
    group = LayerGroup(layers=27, kv_heads=1, k_dim=576, v_dim=0)
    text = formula(KvLayout(groups=(group,)), 1, "bf16")
    assert text == "27 layers × 1 KV heads × 576 × 1 tokens × 2 bytes × 1 = 31,104 bytes"


def test_keys_and_values_may_differ_in_size() -> None:
    group = LayerGroup(layers=1, kv_heads=2, k_dim=192, v_dim=128)
    layout = KvLayout(groups=(group,))
    assert bytes_per_token(layout, "bf16") == 2 * (192 + 128) * 2
    assert "× (192 + 128) ×" in formula(layout, 1, "bf16")


def test_a_window_caps_what_its_layers_hold() -> None:
    assert bytes_per_token(MIXED, "fp8") == 2 * 2 * 4 * 8
    assert bytes_per_token_within_window(MIXED, "fp8") == 2 * 12 * 4 * 8
    assert bytes_per_sequence(MIXED, 100, "fp8") == 100 * 2 * 12 * 4 * 8
    assert bytes_per_sequence(MIXED, 101, "fp8") == 100 * 2 * 12 * 4 * 8 + 2 * 2 * 4 * 8


def test_compressed_tokens_cost_a_part_each_and_whole_entries_together() -> None:
    group = LayerGroup(layers=1, kv_heads=1, k_dim=6, v_dim=0, tokens_per_entry=4)
    layout = KvLayout(groups=(group,))
    assert bytes_per_token(layout, "fp8") == 1.5
    assert bytes_per_sequence(layout, 11, "fp8") == 12


def test_a_constant_state_does_not_grow_and_stands_apart() -> None:
    state = StateGroup(
        name="Mamba", layers=2, conv_elements=3, recurrent_elements=5, recurrent_bytes=4
    )
    layout = KvLayout(groups=(), states=(state,))
    assert state_bytes(layout, "bf16") == 2 * (3 * 2 + 5 * 4)
    assert bytes_per_sequence(layout, 10**6, "bf16") == 0
    assert formula(layout, 5, "bf16") == "no layer keeps a KV cache = 0 bytes"


def test_a_plain_layout_is_three_sizes_and_another_one_is_not() -> None:
    assert plain_shape(SMOLLM2) == KvShape(layers=30, kv_heads=3, head_dim=64)
    assert plain_shape(MIXED) is None
    latent = LayerGroup(layers=1, kv_heads=1, k_dim=576, v_dim=0)
    assert plain_shape(KvLayout(groups=(latent,))) is None
    assert plain_shape(KvLayout(groups=())) is None


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"layers": 0}, "The number of layers must be at least 1."),
        ({"kv_heads": -3}, "The number of KV heads must be at least 1."),
        ({"head_dim": 10**13}, "The head dim is absurdly large"),
        ({"layers": 1.5}, r"must be a whole number, not 1\.5\."),
        ({"layers": True}, "must be a whole number, not True"),
        ({"head_dim": -(10**5000)}, "The head dim must be at least 1."),
    ],
)
def test_a_size_that_no_model_has_is_one_sentence(sizes: dict[str, int], sentence: str) -> None:
    layout = KvShape(**{"layers": 1, "kv_heads": 1, "head_dim": 1, **sizes}).layout()
    with pytest.raises(KvError, match=sentence):
        total_bytes(layout, 1, "bf16")


@pytest.mark.parametrize(("tokens", "batch"), [(0, 1), (1, 0), (10**13, 1), (1, 10**13)])
def test_a_length_or_batch_out_of_bounds_is_one_sentence(tokens: int, batch: int) -> None:
    with pytest.raises(KvError):
        total_bytes(SMOLLM2, tokens, "bf16", batch)


def test_sizes_that_are_absurd_together_are_one_sentence() -> None:
    shape = KvShape(layers=10**12, kv_heads=10**12, head_dim=10**12)
    with pytest.raises(KvError, match="more bytes than any machine has"):
        total_bytes(shape.layout(), 1, "bf16")


def test_an_unknown_dtype_names_those_that_are_known() -> None:
    with pytest.raises(KvError, match="choose one of fp32, fp16, bf16, fp8"):
        bytes_per_token(SMOLLM2, "int3")


SIZE = st.integers(1, 10**4)


@given(SIZE, SIZE, SIZE, SIZE, st.sampled_from(sorted(DTYPE_BYTES)), st.integers(1, 512))
def test_a_plain_model_is_the_product_that_everybody_knows(
    layers: int, kv_heads: int, head_dim: int, tokens: int, dtype: str, batch: int
) -> None:
    layout = KvShape(layers=layers, kv_heads=kv_heads, head_dim=head_dim).layout()
    product = 2 * layers * kv_heads * head_dim * tokens * DTYPE_BYTES[dtype] * batch
    assert total_bytes(layout, tokens, dtype, batch) == product
    assert bytes_per_token(layout, dtype) == bytes_per_token_within_window(layout, dtype)
