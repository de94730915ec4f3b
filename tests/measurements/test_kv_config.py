import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements.kv import arithmetic
from measurements.kv.config import parse_config, read_config
from measurements.kv.fields import ConfigError

TRUTH = json.loads((Path(__file__).parent / "kv_truth.json").read_text())
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 64,
}


def figures_of(config: dict[str, Any]) -> dict[str, float]:
    layout = parse_config(config).layout
    return {
        "bytes_per_token_bf16": arithmetic.bytes_per_token(layout, "bf16"),
        "bytes_per_token_within_window_bf16": arithmetic.bytes_per_token_within_window(
            layout, "bf16"
        ),
        "bytes_at_seq_2048_bf16": arithmetic.bytes_per_sequence(layout, 2048, "bf16"),
        "bytes_at_seq_131072_bf16": arithmetic.bytes_per_sequence(layout, 131_072, "bf16"),
        "constant_state_bytes": arithmetic.state_bytes(layout, "bf16"),
        "cross_attention_bytes_per_encoder_token_bf16": (
            arithmetic.cross_attention_bytes_per_encoder_token(layout, "bf16")
        ),
    }


@pytest.mark.parametrize("case", TRUTH, ids=lambda case: case["name"])
def test_a_known_model_has_its_right_figures(case: dict[str, Any]) -> None:
    figures = figures_of(case["config"])
    assert {name: figures[name] for name in case["expect"]} == case["expect"]


def group_names(config: dict[str, Any]) -> list[tuple[str, int]]:
    return [(group.name, group.layers) for group in parse_config(config).layout.groups]


def per_token(config: dict[str, Any]) -> float:
    return arithmetic.bytes_per_token(parse_config(config).layout, "bf16")


def test_an_explicit_null_for_kv_heads_means_one_for_each_query_head() -> None:
    assert per_token({**LLAMA, "num_key_value_heads": None}) == 4 * per_token(LLAMA)
    mistral = {**LLAMA, "model_type": "mistral", "sliding_window": None}
    assert per_token({**mistral, "num_key_value_heads": None}) == 4 * per_token(LLAMA)


def test_an_explicit_null_for_head_dim_means_hidden_size_by_heads() -> None:
    assert per_token({**LLAMA, "head_dim": None}) == per_token(LLAMA)
    assert per_token({**LLAMA, "head_dim": 16}) == 2 * per_token(LLAMA)


def test_mistral_without_a_word_on_its_window_has_that_of_its_class() -> None:
    (group,) = parse_config({**LLAMA, "model_type": "mistral"}).layout.groups
    assert group.window == 4096
    assert group_names({**LLAMA, "model_type": "mistral", "sliding_window": None}) == [
        ("full attention", 4)
    ]


def test_qwen_slides_only_when_told_to_and_only_in_its_upper_layers() -> None:
    qwen = {**LLAMA, "model_type": "qwen2", "sliding_window": 128, "max_window_layers": 3}
    assert group_names(qwen) == [("full attention", 4)]
    assert group_names({**qwen, "use_sliding_window": True}) == [
        ("full attention", 3),
        ("sliding window", 1),
    ]


def test_written_layer_types_go_before_the_rule_of_the_class() -> None:
    gemma = {**LLAMA, "model_type": "gemma3_text", "head_dim": 16, "sliding_window": 32}
    types = ["full_attention"] * 3 + ["sliding_attention"]
    assert group_names(gemma) == [("sliding window", 4)]
    assert group_names({**gemma, "layer_types": types}) == [
        ("full attention", 3),
        ("sliding window", 1),
    ]


def test_exaone_writes_its_pattern_in_letters() -> None:
    exaone = {**LLAMA, "model_type": "exaone4", "num_hidden_layers": 10, "sliding_window": 8}
    pattern = {**exaone, "sliding_window_pattern": "LLLG"}
    assert group_names(pattern) == [("full attention", 3), ("sliding window", 7)]
    assert group_names({**exaone, "sliding_window": None}) == [("full attention", 10)]


def test_llama_4_may_list_its_layers_without_rope() -> None:
    llama4 = {**LLAMA, "model_type": "llama4_text"}
    assert group_names(llama4) == [("full attention", 1), ("chunked attention", 3)]
    assert group_names({**llama4, "no_rope_layers": [1, 0, 0, 0]}) == [
        ("full attention", 3),
        ("chunked attention", 1),
    ]


def test_a_quantised_checkpoint_has_no_quantised_cache() -> None:
    quantised = {**LLAMA, "torch_dtype": "float16", "quantization_config": {"bits": 4}}
    model = parse_config(quantised)
    assert model.dtype == "fp16"
    assert model.layout == parse_config(LLAMA).layout


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "torch.float32"}, "fp32"),
        ({"dtype": "float8_e4m3fn"}, None),
        ({}, None),
        ({"dtype": 3}, None),
    ],
)
def test_the_dtype_is_read_where_it_is_said(config: dict[str, Any], dtype: str | None) -> None:
    assert parse_config({**LLAMA, **config}).dtype == dtype


def test_a_multimodal_config_is_read_by_its_language_model() -> None:
    vision = {"num_hidden_layers": 99, "hidden_size": 1152}
    config = {
        "model_type": "some_vlm",
        "torch_dtype": "bfloat16",
        "num_hidden_layers": 7,
        "vision_config": vision,
        "text_config": {**LLAMA, "max_position_embeddings": 512},
    }
    model = parse_config(config)
    assert model.layout == parse_config(LLAMA).layout
    assert (model.dtype, model.max_position, model.model_type) == ("bf16", 512, "llama")


def test_the_query_heads_and_the_longest_context_are_told() -> None:
    model = parse_config({**LLAMA, "n_positions": 1024})
    assert (model.attention_heads, model.max_position) == (8, 1024)


def test_an_unknown_model_type_is_read_as_plain_and_says_so() -> None:
    model = parse_config({**LLAMA, "model_type": "brand_new"})
    assert model.layout == parse_config(LLAMA).layout
    assert model.assumptions == (
        "The model type 'brand_new' is not known here and was read as plain attention.",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kv_lora_rank", 512),
        ("sliding_window", 4096),
        ("ssm_state_size", 128),
        ("num_kv_shared_layers", 2),
        ("block_configs", [{}]),
        ("is_encoder_decoder", True),
        ("use_cla", True),
    ],
)
def test_an_unknown_model_type_with_an_unusual_cache_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"'brand_new' has {name}, which is not known here"):
        parse_config({**LLAMA, "model_type": "brand_new", name: value})


def test_an_unusual_field_that_is_switched_off_is_no_reason_to_refuse() -> None:
    off = {"sliding_window": None, "use_cla": False, "cla_share_factor": 2}
    assert per_token({**LLAMA, "model_type": "brand_new", **off}) == per_token(LLAMA)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_hidden_layers": "32"}, "num_hidden_layers must be a whole number, not '32'"),
        ({"num_hidden_layers": 1001}, "says 1,001 layers: no model has more than a thousand"),
        ({"num_hidden_layers": 10**30}, "num_hidden_layers must lie between 1 and 10,000,000"),
        ({"num_hidden_layers": 10**6000}, "not a number of many digits"),
        ({"num_attention_heads": 0}, "num_attention_heads must lie between 1"),
        ({"num_key_value_heads": -1}, "config's num_key_value_heads must lie between 1"),
        ({"layer_types": ["linear_attention"] * 4}, "keep a state, whose size is not known"),
        ({"model_type": "rwkv7"}, "'rwkv7' keeps no keys and values"),
        ({"model_type": "bert", "is_decoder": True}, "'bert' that is used as a decoder"),
        ({"hidden_size": 65}, "its 8 heads do not divide its hidden size of 65"),
        ({"hidden_size": True}, "hidden_size must be a whole number, not True"),
        ({"hidden_size": None}, "does not say hidden_size"),
        ({"num_hidden_layers": None}, "does not say num_hidden_layers"),
        ({"layer_types": ["conv"] * 4}, "layers of a kind that is not known here: 'conv'"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 items for 4 layers"),
        ({"layer_types": "full"}, "layer_types must be a list"),
        ({"layer_types": [["x"]] * 4}, "not known here: a list"),
        ({"model_type": 7}, "model_type must be a name"),
        ({"text_config": [1]}, "text_config must be an object"),
        ({"model_type": "llama4_text", "no_rope_layers": [1]}, "has 1 items for 4 layers"),
        ({"model_type": "deepseek_v3"}, "does not say kv_lora_rank"),
        ({"model_type": "deepseek_v4", "head_dim": 8}, "does not say"),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "MX*-"}, "letters M, "),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M*"}, "2 letters for 4 layers"),
        ({"model_type": "granitemoehybrid"}, "does not say layer_types"),
        ({"model_type": "gemma3n_text", "num_kv_shared_layers": 4}, "4 of its 4 layers share"),
        ({"model_type": "exaone4", "sliding_window_pattern": "LX"}, "must be of L and G"),
        ({"model_type": "qwen2", "use_sliding_window": 1}, "must be true or false, not 1"),
        ({"model_type": "mllama"}, "which of its layers look at the image"),
        ({"model_type": "mpt", "attn_config": 3}, "attn_config must be an object"),
    ],
)
def test_a_bad_value_is_refused_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refusal:
        parse_config({**LLAMA, **change})
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250


def test_an_empty_config_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not say num_hidden_layers"):
        parse_config({})


def test_a_top_level_config_without_sizes_is_refused_and_not_guessed() -> None:
    with pytest.raises(ConfigError, match="does not say num_hidden_layers"):
        parse_config({"model_type": "llama"})


def test_a_folder_and_its_config_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_config(tmp_path) == read_config(tmp_path / "config.json") == parse_config(LLAMA)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not JSON"),
        (b"<html>", "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"[1, 2]", "holds no JSON object"),
        (b"[" * 200_000, "is nested too deeply|is not JSON"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "is nested too deeply|is not JSON"),
        (b'{"num_hidden_layers": ' + b"9" * 10_000 + b"}", "num_hidden_layers|is not JSON"),
    ],
)
def test_a_file_that_is_no_config_is_one_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        read_config(tmp_path)


def test_a_file_of_100_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(ConfigError, match=r"104,857,600 bytes: that is no model's config\.json"):
        read_config(path)


def test_a_path_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not there: give a model's folder"):
        read_config(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is not there"):
        read_config(tmp_path)
    with pytest.raises(ConfigError, match="is not there"):
        read_config(Path("x\0y"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(case=st.sampled_from(TRUTH), data=st.data())
def test_a_config_with_a_hostile_value_gives_figures_or_one_sentence(
    case: dict[str, Any], data: st.DataObject
) -> None:
    config = json.loads(json.dumps(case["config"]))
    text = config.get("text_config", config)
    text[data.draw(st.sampled_from(sorted(text)))] = data.draw(ANYTHING)
    try:
        figures = figures_of(config)
    except ConfigError as refusal:
        sentence = str(refusal)
    else:
        sentence = "." if all(value >= 0 for value in figures.values()) else ""
    assert sentence.endswith(".")
    assert "\n" not in sentence
