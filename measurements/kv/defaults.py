"""What a `config.json` leaves to its model's class (transformers 5.19): sizes and patterns."""

from collections.abc import Mapping

Defaults = Mapping[str, int | str | bool]

_LLAMA: Defaults = {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}

# Sizes that real checkpoints of these families leave out.
SIZES: dict[str, Defaults] = {
    "gemma2": {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
    },
    "gemma3n_text": {
        "num_key_value_heads": 2,
        "head_dim": 256,
        "sliding_window": 512,
        "num_kv_shared_layers": 15,
    },
    "gemma4_text": {
        "num_key_value_heads": 4,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 512,
    },
    "gpt_oss": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128},
    "cohere2": {"sliding_window": 4096},
    "olmo3": {"sliding_window": 4096},
    "exaone4": {"num_key_value_heads": 32, "sliding_window": 4096},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "ministral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "llama4_text": {"num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192},
    "falcon": {"multi_query": True},
    "gpt_bigcode": {"multi_query": True},
    "whisper": {"max_source_positions": 1500},
    "t5": {"num_heads": 8, "d_kv": 64},
    "minicpm3": {"qk_nope_head_dim": 64},
    "deepseek_v32": {"index_head_dim": 128},
    "qwen3_next": {
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
    },
    "jamba": {
        "num_key_value_heads": 8,
        "attn_layer_period": 8,
        "attn_layer_offset": 4,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
    },
    "granitemoehybrid": {
        "mamba_n_heads": 128,
        "mamba_n_groups": 1,
        "mamba_d_state": 256,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
    },
    "nemotron_h": {"conv_kernel": 4},
    "mamba": {"state_size": 16, "conv_kernel": 4, "expand": 2},
}
SIZES["qwen3_5_text"] = {**SIZES["qwen3_next"], "num_key_value_heads": 4}

# A class that a nested text config may name and then say no size at all (LLaVA 1.5).
WHOLE_CLASSES: dict[str, Defaults] = {"llama": _LLAMA}

# Where no layer_types is written: every n-th layer is full, the others have a window.
FULL_EVERY = {
    "gemma2": 2,
    "gemma3_text": 6,
    "gemma3n_text": 5,
    "gemma4_text": 6,
    "cohere2": 4,
    "olmo3": 4,
    "exaone4": 4,
    "gpt_oss": 2,
}
# A sliding_window that is not null is in force on every layer.
ALL_SLIDING = frozenset({"mistral", "phi3", "ministral"})
# A sliding_window counts only with use_sliding_window, and from max_window_layers upwards.
UPPER_SLIDING = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})

# vLLM keeps one latent vector a token for these; others with a kv_lora_rank it runs as MHA.
LATENT = frozenset(
    {
        "axk1",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "glm4_moe_lite",
        "kimi_k2",
        "longcat_flash",
        "pangu_ultra_moe",
        "minicpm3",
    }
)
# Their sparse attention keeps one more vector a token.
INDEXED = frozenset({"deepseek_v32"})

ENCODER_ONLY = frozenset(
    {
        "bert",
        "roberta",
        "xlm-roberta",
        "distilbert",
        "albert",
        "electra",
        "deberta-v2",
        "modernbert",
    }
)

# Names by which a text config of a wrapper is known to be the one of another model type.
ALIASES = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "qwen3_5": "qwen3_5_text",
    "mllama": "mllama_text_model",
}

# They keep something else than keys and values, and no field of theirs gives that away.
NOT_ATTENTION = frozenset({"gla", "retnet", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm"})

# Fields that change what a cache holds. A model type that is not known here and has one of them is
# refused: plain arithmetic would give a wrong number.
UNUSUAL = (
    "kv_lora_rank",
    "sliding_window",
    "attention_chunk_size",
    "num_kv_shared_layers",
    "compress_ratios",
    "index_head_dim",
    "index_topk",
    "use_cla",
    "block_configs",
    "per_layer_config",
    "attn_type_list",
    "attn_layer_period",
    "hybrid_override_pattern",
    "hybrid_layer_ids",
    "layers_block_type",
    "linear_attn_config",
    "linear_num_key_heads",
    "full_attention_interval",
    "mamba_d_state",
    "state_size",
    "ssm_state_size",
    "ssm_cfg",
    "conv_L_cache",
    "d_state",
    "lru_width",
    "attention_types",
    "attention_window_size",
    "head_size_divisor",
    "cross_attention_layers",
    "decoder_layers",
    "is_encoder_decoder",
    "num_decoder_layers",
)
