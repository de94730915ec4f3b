"""Prompt sets: built-in ones, and files of the person's own."""

import csv
import io
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from measurements import plan

MAX_FILE_BYTES = 64 * 1024 * 1024
LONG_WORDS = 520
SHARED = "shared"  # the set whose prompts share a prefix: it is sent without a unique one


class PromptError(ValueError):
    """Prompts that cannot be used, in one sentence."""


@dataclass(frozen=True)
class Prompt:
    """One prompt: a text, or a conversation in the API's own form."""

    prompt_id: str
    content: str
    conversation: tuple[dict[str, Any], ...] = ()
    token_ids: tuple[int, ...] = ()  # for the completions API, instead of a text

    def messages(self) -> Any:
        """Return the prompt as the chat API wants it."""
        return list(self.conversation) or [{"role": "user", "content": self.content}]

    def text(self) -> str | list[int]:
        """Return the prompt as the completions API wants it."""
        if self.token_ids:
            return list(self.token_ids)
        if not self.conversation:
            return self.content
        return "\n".join(str(message.get("content", "")) for message in self.conversation)

    def marked(self, mark: str) -> "Prompt":
        """Return the prompt with `mark` before everything else, so that no prefix is shared."""
        if not self.conversation:
            return replace(self, content=mark + self.content)
        first, *others = self.conversation
        content = first.get("content") or ""
        parts = isinstance(content, list)  # a message in parts: text, images …
        marked = [{"type": "text", "text": mark}, *content] if parts else mark + str(content)
        return replace(self, conversation=({**first, "content": marked}, *others))


_SHORT = (
    "What does a key-value cache hold while a language model answers?",
    "Why is the first token of a reply slower than the next ones?",
    "Name three reasons why a web server may answer late.",
    "Explain batching to somebody who bakes bread.",
    "What is the difference between latency and throughput?",
    "Write one honest sentence about the weather in April.",
    "How many minutes are there in a leap year?",
    "Give me a short definition of memory bandwidth.",
    "Describe a lighthouse in two sentences.",
    "Why do queues grow when a machine is nearly busy?",
    "What happens when a cup of tea cools down?",
    "List four rivers and the seas that they reach.",
    "Translate into French: the train leaves at noon.",
    "What would you ask a pilot before a flight?",
    "Explain in one paragraph how a zip works.",
    "Suggest a name for a small red boat, and say why.",
)

_SENTENCES = (
    "The harbour office keeps a book in which every arrival is written down with its hour.",
    "On most mornings the first boats come in before the lamps along the pier are put out.",
    "A clerk compares the hour in the book with the hour that the captain wrote on board.",
    "When the two do not agree, the clerk asks who looked at which clock, and when.",
    "Some captains write the hour at which they saw the harbour, not the hour of mooring.",
    "In a storm several boats wait outside, and then they all come in within a few minutes.",
    "The book then shows one busy line, although each crew had waited for a different time.",
    "An old rule says that the bell rings once for each boat, and never twice for the same.",
    "Visitors believe that the bell keeps the time, but it only says that something happened.",
    "The carpenter on the quay measures planks with a rule that he made himself.",
    "He checks it against the brass rule in the office once a year, on the first of March.",
    "If his rule has become shorter, he does not change the planks but the rule.",
    "Every crate that leaves the store is weighed, and the weight is chalked on its lid.",
    "Fish that waits in the sun loses weight, so the scale stands in the shade of the wall.",
    "The store has eight doors, and with all of them open the carts still stand in a queue.",
    "A ninth door was built last year, yet the queue is as long, because the road is narrow.",
    "The teacher brings her class here to show them how waiting grows when nobody is idle.",
    "She lets the children count carts for an hour and write down each one's waiting time.",
    "The longest wait of the day is always remembered, and the usual one is always forgotten.",
    "At noon the tide turns, the boats lean the other way, and the clerk closes the book.",
)

_TASKS = (
    "Summarise the report above in three sentences.",
    "Which clocks does the report mention, and how can they disagree?",
    "What would you measure first in this harbour, and with what?",
    "Write a letter to the clerk that asks for two changes.",
    "List the people in the report and what each of them does.",
    "Explain why the ninth door did not help.",
    "Give the report a title and a one-line abstract.",
    "Which sentence of the report is the most surprising one? Say why.",
    "Turn the report into a short dialogue between the clerk and the teacher.",
    "What does the report say about waiting, in your own words?",
    "Find two claims in the report that a visitor could test.",
    "Write five questions that the teacher could ask her class.",
)


def _short() -> list[Prompt]:
    return [Prompt(f"short-{number}", text) for number, text in enumerate(_SHORT, 1)]


def _long() -> list[Prompt]:
    """Return a dozen prompts of 520 words and more, the same ones on every machine."""
    return [
        Prompt(f"long-{number}", f"{_report(number)}\n\n{task}")
        for number, task in enumerate(_TASKS, 1)
    ]


def _report(number: int) -> str:
    order = random.Random(number)  # noqa: S311 - a repeatable order of sentences, no secret
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < LONG_WORDS:
        sentences += order.sample(_SENTENCES, len(_SENTENCES))
    return " ".join(sentences)


def _shared() -> list[Prompt]:
    """Return prompts that begin with the same 520 words and end with a task of their own."""
    report = _report(0)
    return [
        Prompt(f"shared-{number}", f"{report}\n\n{task}") for number, task in enumerate(_TASKS, 1)
    ]


def _mixed() -> list[Prompt]:
    """Return short questions with one long prompt after every third."""
    short, long = _short(), _long()
    found = [
        prompt
        for number, question in enumerate(short)
        for prompt in ((question, long[number // 3]) if number % 3 == 2 else (question,))  # noqa: PLR2004 - every third
    ]
    return [replace(prompt, prompt_id=f"mixed-{n}") for n, prompt in enumerate(found, 1)]


BUILT_IN: dict[str, Callable[[], list[Prompt]]] = {
    "short": _short,
    "mixed": _mixed,
    "long": _long,
    SHARED: _shared,
}


def load(source: str) -> list[Prompt]:
    """Return the prompts of a built-in set or a file; PromptError where there are none."""
    if source in BUILT_IN:
        return BUILT_IN[source]()
    path = Path(source)
    readers = {
        ".txt": _from_lines,
        ".jsonl": _from_jsonl,
        ".json": _from_json_list,
        ".csv": _from_csv,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(BUILT_IN)
        raise PromptError(
            f"{source} is neither a built-in prompt set ({known}) nor a .txt, .jsonl, .json or "
            ".csv file."
        )
    prompts = reader(_read(path), path)
    if not prompts:
        raise PromptError(f"{path} holds no prompt: write one a line.")
    return prompts


def endless(prompts: Sequence[Prompt], settings: plan.Prompts) -> Iterator[Prompt]:
    """Yield prompts for ever: each set once in an order drawn by the seed, then drawn anew.

    The unique prefix is new in every run, else a second run would find the first one's cache.
    """
    order = random.Random(settings.seed)  # noqa: S311 - a repeatable order, no secret
    run_mark = secrets.token_hex(4)
    count = 0
    while True:
        for prompt in order.sample(prompts, len(prompts)):
            yield prompt.marked(f"({run_mark}-{count}) ") if settings.unique_prefix else prompt
            count += 1


def _head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _read(path: Path) -> str:
    try:
        data = _head_of(path)
    except OSError as error:
        raise PromptError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise PromptError(f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(f"{path} is not a text in UTF-8 (byte {error.start}).") from error
    if "\0" in text:
        raise PromptError(f"{path} holds zero bytes: it is not a text.")
    return text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines that hold something; U+2028 is no line end."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if line.strip():
            yield number, line.strip()


def _from_lines(text: str, path: Path) -> list[Prompt]:
    return [Prompt(f"{path.stem}-{number}", line) for number, line in _lines(text)]


def _from_jsonl(text: str, path: Path) -> list[Prompt]:
    return [_from_json(line, f"{path.stem}-{n}", f"{path}, line {n}") for n, line in _lines(text)]


def _from_json_list(text: str, path: Path) -> list[Prompt]:
    """Read a list of entries, as the ShareGPT collections have it; empty talks are left out."""
    entries = _decoded(text, str(path))
    if not isinstance(entries, list):
        raise PromptError(f"{path} is not a list of prompts; one object a line is a .jsonl file.")
    return [
        _from_value(entry, f"{path.stem}-{number}", f"{path}, entry {number}")
        for number, entry in enumerate(entries, 1)
        if not (isinstance(entry, dict) and entry.get("conversations") == [])
    ]


def _from_json(line: str, prompt_id: str, place: str) -> Prompt:
    return _from_value(_decoded(line, place), prompt_id, place)


def _decoded(text: str, place: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise PromptError(f"{place} is not JSON: {error}.") from error


def _from_value(value: Any, prompt_id: str, place: str) -> Prompt:
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, list) and messages and all(isinstance(m, dict) for m in messages):
            return Prompt(prompt_id, "", tuple(messages))
        prompt = value.get("prompt") or _first_turn(value.get("conversations"))
        if isinstance(prompt, str) and prompt.strip():
            return Prompt(prompt_id, prompt)
    raise PromptError(
        f'{place} has no "prompt" (a text), no "messages" (a list) and no "conversations" '
        "(ShareGPT's list)."
    )


def _first_turn(turns: Any) -> Any:
    """Return what a ShareGPT conversation begins with: its first turn by a person, else its first.

    The replies in the file are not sent: the engine is to make its own.
    """
    found = turns if isinstance(turns, list) else []
    talk = [turn for turn in found if isinstance(turn, dict)]
    by_person = [turn for turn in talk if turn.get("from") in {"human", "user"}]
    return next((turn.get("value") for turn in (*by_person, *talk)), None)


def _from_csv(text: str, path: Path) -> list[Prompt]:
    """Take the column named prompt, or the first one where no column is named so."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(row)]
    except csv.Error as error:
        raise PromptError(f"{path} is not CSV: {error}.") from error
    header = [name.strip().lower() for name in rows[0]] if rows else []
    column = header.index("prompt") if "prompt" in header else 0
    body = rows[1:] if "prompt" in header else rows
    return [
        Prompt(f"{path.stem}-{number}", row[column])
        for number, row in enumerate(body, 1)
        if column < len(row) and row[column].strip()
    ]
