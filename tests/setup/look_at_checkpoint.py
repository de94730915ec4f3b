"""Runs in the engine's environment: says as JSON what a checkpoint's tokenizer and model do."""

import json
import sys
from typing import Any

import torch
from tokenizers.decoders import DecodeStream
from transformers import AutoModelForCausalLM, AutoTokenizer

ASKED = 32


def ask(tokenizer: Any, count: int) -> Any:
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": f"Question {i}: what is the capital of France?"}],
            add_generation_prompt=True,
            tokenize=False,
        )
        for i in range(count)
    ]
    options = {"return_tensors": "pt", "padding": True, "padding_side": "left"}
    return tokenizer(prompts, add_special_tokens=False, **options)


def reply(tokenizer: Any, model: Any, count: int, **options: Any) -> list[list[int]]:
    questions = ask(tokenizer, count)
    written = model.generate(**questions, max_new_tokens=ASKED, **options)
    return written[:, questions.input_ids.shape[1] :].tolist()


def streamed(tokenizer: Any, ids: list[int]) -> list[str | None]:
    stream = DecodeStream([], skip_special_tokens=True)
    return [stream.step(tokenizer.backend_tokenizer, number) for number in ids]


def main() -> None:
    folder, replies = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    sampled = reply(tokenizer, model, replies, do_sample=True, temperature=1.0, top_k=0)
    likeliest = reply(tokenizer, model, 1, do_sample=False)[0]
    answer = {
        "parameters": model.num_parameters(),
        "dtype": str(model.dtype),
        "texts": [tokenizer.decode([number]) for number in range(len(tokenizer))],
        "end": model.generation_config.eos_token_id,
        "sampled": sampled,
        "streamed": [streamed(tokenizer, ids) for ids in sampled],
        "likeliest": tokenizer.decode(likeliest, skip_special_tokens=True),
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
