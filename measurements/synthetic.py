"""Prompts of exactly so many tokens: words that cost one token each, as many as are missing."""

import itertools
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from measurements import plan
from measurements.prompts import Prompt, PromptError

# Short and frequent: nearly every vocabulary has most of them as one token.
_FREQUENT = (
    "of to in on at is it as by we he be or an if my up so no do go me us am the and for not with "
    "that this from have they will time"
)
WORDS = tuple(_FREQUENT.split())
OPENING = "in"
# Every vocabulary has these ids, and special tokens lie below or at the end.
TOKEN_IDS = tuple(range(300, 1000))
_FEWEST_WORDS = 16  # with fewer to choose from, eight words would repeat
_OWN_WORDS = 8

Count = Callable[[Prompt], Awaitable[int]]  # tokens of a prompt as the engine will see it


@dataclass(frozen=True)
class Recipe:
    """How a prompt is put together: of words that cost one token each, or of token ids."""

    length: int  # words after the opening, or ids
    words: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()

    def prompt(self, number: int, choices: Sequence[int]) -> Prompt:
        """Return the prompt of these choices, whole numbers of any size."""
        name = f"synthetic-{number + 1}"
        if self.token_ids:
            ids = self.token_ids
            return Prompt(name, "", token_ids=tuple(ids[choice % len(ids)] for choice in choices))
        chosen = (self.words[choice % len(self.words)] for choice in choices)
        return Prompt(name, " ".join((OPENING, *chosen)))


def of_ids(tokens: int) -> Recipe:
    """Return the recipe for an API that takes token ids: no text, and nothing to find out."""
    return Recipe(tokens, token_ids=TOKEN_IDS)


async def of_words(tokens: int, count: Count) -> Recipe:
    """Return the recipe for prompts of `tokens` tokens, by at most 39 counts; PromptError if none.

    A word's cost is what it adds to the opening. That costs add up holds for all tokenizers that
    split at blanks, and is tried out on two samples before anything is measured.
    """
    base = await count(Prompt("", OPENING))
    if tokens <= base:
        raise PromptError(
            f"A prompt of {tokens} tokens is too short: the chat template and one word alone take "
            f"{base}; ask for more."
        )
    words = [word for word in WORDS if await count(Prompt("", f"{OPENING} {word}")) == base + 1]
    recipe = Recipe(tokens - base, words=tuple(words))
    if len(words) < _FEWEST_WORDS or not await _holds(recipe, tokens, count):
        raise PromptError(
            f"No prompts of exactly {tokens} tokens were found for this model's tokenizer: "
            "choose a prompt set instead."
        )
    return recipe


async def _holds(recipe: Recipe, tokens: int, count: Count) -> bool:
    samples = endless(recipe, plan.Prompts(tokens=tokens))
    return [await count(next(samples)), await count(next(samples))] == [tokens, tokens]


def endless(recipe: Recipe, settings: plan.Prompts) -> Iterator[Prompt]:
    """Yield prompts for ever, all of one length and alike but for eight words.

    With a unique prefix these come first and are new in every run; without one they come last and
    are drawn by the seed, as all the others are.
    """
    draw = random.Random(settings.seed)  # noqa: S311 - repeatable prompts, no secret
    own = min(_OWN_WORDS, recipe.length)
    common = _choices(draw, recipe.length - own)
    for number in itertools.count():
        if settings.unique_prefix:
            yield recipe.prompt(number, _choices(secrets.SystemRandom(), own) + common)
        else:
            yield recipe.prompt(number, common + _choices(draw, own))


def _choices(draw: random.Random, count: int) -> list[int]:
    return [draw.getrandbits(32) for _ in range(count)]
