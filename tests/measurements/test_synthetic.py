"""Prompts of an exact length, by counting with tokenizers of several kinds."""

import asyncio
import re
from collections.abc import Callable
from itertools import islice

import pytest

from measurements import synthetic
from measurements.plan import Prompts
from measurements.prompts import Prompt, PromptError

TEMPLATE = 7  # tokens that a chat template adds

Tokenizer = Callable[[str], int]


def by_words(text: str) -> int:
    return len(text.split())


def by_pairs_of_letters(text: str) -> int:
    """Words of two letters are one token, longer ones several."""
    return sum(-(-len(word) // 2) for word in text.split())


def by_pieces_with_their_blank(text: str) -> int:
    """A blank belongs to the word after it; a word of four letters is two tokens."""
    return sum(2 if len(piece.strip()) == 4 else 1 for piece in re.findall(r" ?\S+", text))


def by_bytes(text: str) -> int:
    return len(text)


def by_pairs_of_words(text: str) -> int:
    """Tokens that span two words: costs do not add up."""
    return -(-by_words(text) // 2)


class Counter:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.calls = 0
        self.tokenizer = tokenizer

    async def __call__(self, prompt: Prompt) -> int:
        self.calls += 1
        return TEMPLATE + self.tokenizer(prompt.content)


def recipe(tokens: int, tokenizer: Tokenizer) -> tuple[synthetic.Recipe, Counter]:
    counter = Counter(tokenizer)
    return asyncio.run(synthetic.of_words(tokens, counter)), counter


def prompts(found: synthetic.Recipe, count: int, **settings: object) -> list[Prompt]:
    return list(islice(synthetic.endless(found, Prompts(**settings)), count))


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("tokens", [9, 20, 200, 5_000])
@pytest.mark.parametrize("tokenizer", [by_words, by_pairs_of_letters, by_pieces_with_their_blank])
def test_every_prompt_has_exactly_the_asked_tokens(
    tokenizer: Tokenizer, tokens: int, unique: bool
) -> None:
    found, counter = recipe(tokens, tokenizer)
    made = prompts(found, 40, unique_prefix=unique)
    assert {TEMPLATE + tokenizer(prompt.content) for prompt in made} == {tokens}
    assert counter.calls <= 39
    assert len({prompt.prompt_id for prompt in made}) == 40


def test_a_unique_prefix_is_new_for_each_request_and_in_each_run() -> None:
    found, _ = recipe(200, by_words)
    made = prompts(found, 500) + prompts(found, 500)
    heads = {" ".join(prompt.content.split()[:9]) for prompt in made}
    assert len(heads) == 1000


def test_all_but_the_unique_prefix_is_repeated_by_the_seed() -> None:
    found, _ = recipe(200, by_words)

    def tail(seed: int) -> str:
        return prompts(found, 1, seed=seed)[0].content.split(" ", 9)[9]

    assert tail(1) == tail(1)
    assert tail(1) != tail(2)


def test_shared_prompts_differ_in_their_last_eight_words_and_are_repeated_by_the_seed() -> None:
    found, _ = recipe(200, by_words)
    made = prompts(found, 50, unique_prefix=False, seed=4)
    words = [prompt.content.split() for prompt in made]
    assert len({tuple(of_one[:-8]) for of_one in words}) == 1
    assert len({tuple(of_one[-8:]) for of_one in words}) == 50
    assert made == prompts(found, 50, unique_prefix=False, seed=4)


def test_a_length_that_the_template_takes_alone_is_refused() -> None:
    with pytest.raises(PromptError, match=r"8 tokens is too short: .* take 8; ask for more"):
        recipe(8, by_words)


@pytest.mark.parametrize("tokenizer", [by_bytes, by_pairs_of_words])
def test_a_tokenizer_that_has_no_such_words_is_said(tokenizer: Tokenizer) -> None:
    with pytest.raises(PromptError, match="No prompts of exactly 200 tokens were found"):
        recipe(200, tokenizer)


def test_token_ids_are_as_many_as_asked_and_no_text() -> None:
    first, second = prompts(synthetic.of_ids(30), 2)
    assert len(first.text()) == len(second.text()) == 30
    assert isinstance(first.text(), list)
    assert first.text()[:8] != second.text()[:8]
    assert first.text()[8:] == second.text()[8:]
