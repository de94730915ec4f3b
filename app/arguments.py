"""Words of the command line → values; each refusal is one sentence."""

import argparse
import math
from collections.abc import Callable
from typing import NoReturn

from measurements.other_tools.tools import TOOLS
from measurements.plan import MAX_CONCURRENCY

_LONGEST = 15  # digits


class BadInputError(Exception):
    """Input that cannot be used; its text is a sentence on what is wrong and what to do."""


class Parser(argparse.ArgumentParser):
    """argparse that raises one sentence instead of printing the usage and leaving."""

    def error(self, message: str) -> NoReturn:
        """Raise `BadInputError`; sentences of our own converters stand as they are."""
        option, colon, sentence = message.partition(": ")
        if colon and option.startswith("argument ") and sentence.endswith("."):
            raise BadInputError(sentence)
        raise BadInputError(f"{message.removeprefix('argument ')}; see '{self.prog} --help'.")


def whole(option: str, low: int, high: int) -> Callable[[str], int]:
    """Return a converter to whole numbers from `low` to `high`."""

    def convert(text: str) -> int:
        value = _as_whole(text)
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{option} takes a whole number from {low} to {high}; got '{text}'."
            )
        return value

    return convert


def real(option: str, low: float, high: float) -> Callable[[str], float]:
    """Return a converter to numbers from `low` to `high`."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{option} takes a number from {low:g} to {high:g}; got '{text}'."
            )
        return value

    return convert


def one_of(option: str, *names: str) -> Callable[[str], str]:
    """Return a converter that knows these names only."""

    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"{option} takes {', '.join(names[:-1])} or {names[-1]}; got '{text}'."
            )
        return text

    return convert


def add_as(group: "argparse._ActionsContainer") -> None:
    """Add the option for another tool's words, `tool` among the arguments."""
    group.add_argument(
        "--as",
        dest="tool",
        type=one_of("--as", *TOOLS),
        metavar="|".join(TOOLS),
        help="the same arrivals in another tool's words, beside ours",
    )


def levels(text: str) -> tuple[int, ...]:
    """Return the concurrency levels of a list such as 1,8."""
    values = [_as_whole(word) for word in text.split(",")]
    good = tuple(value for value in values if value and 1 <= value <= MAX_CONCURRENCY)
    if len(good) < len(values):
        raise argparse.ArgumentTypeError(
            f"--concurrency takes whole numbers from 1 to {MAX_CONCURRENCY}, such as 1,8; "
            f"got '{text}'."
        )
    return good


def _as_whole(text: str) -> int | None:
    """Return the number, None where the text is not plain digits (int() takes '1_0' and more)."""
    text = text.strip()
    plain = text.isascii() and text.isdigit() and len(text) <= _LONGEST
    return int(text) if plain else None
