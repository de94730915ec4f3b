"""`tiny-lm`: a Llama of 8.4M random weights that is made in seconds and replies at full length.

Each token that it writes is one word of its own, so a reply's tokens can be counted by eye.
It never writes the end-of-sequence token: channel 0 of the residual stream is a constant that no
layer reads or writes, so the output matrix can use it as a bias and push single ids out of reach.
"""

import itertools
import string
from pathlib import Path
from typing import Any

from engine_launcher.checkpoints.publish import run_as_script

RECIPE = "tiny-lm 1"
VOCAB_SIZE = 8192
SEED = 20
# Unknown comes first: WordPiece falls back to it.
SPECIAL_TOKENS = ("<|unknown|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
UNKNOWN, END = SPECIAL_TOKENS[:2]
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|{{ message['role'] }}|> {{ message['content'] }}<|end|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
BIAS_CHANNEL = 0
BIAS_INPUT = 16.0  # as strong as all other channels together: sqrt(hidden size)
BIAS_OUT_OF_REACH = -16.0


def vocabulary() -> tuple[list[str], int]:
    """Return all tokens in the order of their ids, and how many come before the words."""
    characters = [c for c in string.printable if c.isprintable() and not c.isspace()]
    pairs = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
    starts = characters + pairs
    pieces = [*SPECIAL_TOKENS, *starts, *(f"##{start}" for start in starts)]
    return pieces + _words(VOCAB_SIZE - len(pieces)), len(pieces)


def _words(count: int) -> list[str]:
    syllables = ["".join(pair) for pair in itertools.product("bdfgjklmnprstvz", "aeiou")]
    words = itertools.chain(
        map("".join, itertools.product(syllables, repeat=2)),
        map("".join, itertools.product(syllables, syllables, "lnrs")),
    )
    return list(itertools.islice(words, count))


def make_tokenizer() -> Any:
    """Build the tokenizer: words, and pieces of one or two characters for any other text."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens, _ = vocabulary()
    ids = {token: number for number, token in enumerate(tokens)}
    backend = Tokenizer(models.WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=100_000))
    backend.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Split(Regex(r"[^\x00-\x7f]"), "isolated"),
        ]
    )
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token=UNKNOWN,
        eos_token=END,
        pad_token=END,
        additional_special_tokens=list(SPECIAL_TOKENS[2:]),
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=8192,
    )


def make_model() -> Any:
    """Build the model: seeded random weights, with all ids but the words out of reach."""
    import torch
    from transformers import GenerationConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    end = SPECIAL_TOKENS.index(END)
    model = LlamaForCausalLM(_config(end)).eval()
    with torch.no_grad():
        _randomize(model)
        _reserve_bias_channel(model)
    model.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=end)
    return model.to(torch.bfloat16)


def _config(end: int) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=256,
        intermediate_size=432,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=end,
        dtype="bfloat16",
    )


def _randomize(model: Any) -> None:
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            weight.normal_(std=1.0 if "embed_tokens" in name else weight.shape[1] ** -0.5)


def _reserve_bias_channel(model: Any) -> None:
    _, words_begin = vocabulary()
    model.model.embed_tokens.weight[:, BIAS_CHANNEL] = BIAS_INPUT
    for layer in model.model.layers:
        layer.input_layernorm.weight[BIAS_CHANNEL] = 0
        layer.post_attention_layernorm.weight[BIAS_CHANNEL] = 0
        layer.self_attn.o_proj.weight[BIAS_CHANNEL] = 0
        layer.mlp.down_proj.weight[BIAS_CHANNEL] = 0
    model.lm_head.weight[:, BIAS_CHANNEL] = 0
    model.lm_head.weight[:words_begin] = 0
    model.lm_head.weight[:words_begin, BIAS_CHANNEL] = BIAS_OUT_OF_REACH


def make(folder: Path) -> None:
    """Write the whole checkpoint into `folder`."""
    make_tokenizer().save_pretrained(folder)
    make_model().save_pretrained(folder)


if __name__ == "__main__":
    raise SystemExit(run_as_script(RECIPE, make))
