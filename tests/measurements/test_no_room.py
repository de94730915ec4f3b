"""Engines' words on a length that does not fit, and ours with the three numbers."""

import pytest

from measurements.no_room import no_room

EARLIER = (
    "The server does not accept the request: HTTP 400: This model's maximum context length is 2048 "
    "tokens. However, you requested 2053 tokens (8 in the messages, 2045 in the completion)."
)
TOO_LARGE = (
    "HTTP 400: 'max_tokens' or 'max_completion_tokens' is too large: 2045. This model's maximum "
    "context length is 2048 tokens and your request has 8 input tokens."
)
IN_CHARACTERS = (
    "HTTP 400: This model's maximum context length is 2048 tokens. However, your prompt contains "
    "4000 characters (more than 300 characters)."
)
INPUT = "HTTP 400: Input length (2100) exceeds model's maximum context length (2048)."
ENGINES = [
    (EARLIER, "a prompt of 8 tokens"),
    (TOO_LARGE, "a prompt of 8 tokens"),
    (INPUT, "a prompt of 2,100 tokens"),
    (IN_CHARACTERS, "the prompt"),
]


@pytest.mark.parametrize(("words", "prompt"), ENGINES)
def test_the_numbers_are_found_in_each_engines_words(words: str, prompt: str) -> None:
    assert no_room(words, 2045).startswith(
        f"The model has room for 2,048 tokens, which {prompt} and a reply of 2,045 exceed: "
    )


def test_another_refusal_stays_as_it_is() -> None:
    assert no_room("The model `x` does not exist.", 64) == "The model `x` does not exist."
