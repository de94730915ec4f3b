"""A prompt and a reply that do not fit into the model's length: the engine's words → ours. Pure."""

import re

_LENGTH = re.compile(r"maximum context length (?:is|\()\s*(\d+)")
_PROMPT = re.compile(
    r"(?P<about>at least )?(?P<count>\d+) (?:in the messages|in the prompt|input tokens)"
    r"|Input length \((?P<whole>\d+)\)"
)


def no_room(sentence: str, max_tokens: int) -> str:
    """Return one sentence with the three numbers, or `sentence` where it is about something else.

    vLLM cuts a prompt that is too long, and then knows a lower bound of its length alone.
    """
    length = _LENGTH.search(sentence)
    if length is None:
        return sentence
    found = _PROMPT.search(sentence)
    prompt = "the prompt"
    if found is not None:
        about = "at least " if found["about"] else ""
        prompt = f"a prompt of {about}{int(found['count'] or found['whole']):,} tokens"
    return (
        f"The model has room for {int(length[1]):,} tokens, which {prompt} and a reply of "
        f"{max_tokens:,} exceed: ask for a shorter reply or prompt, or start the engine with a "
        "greater length."
    )
