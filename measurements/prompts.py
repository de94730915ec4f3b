"""Prompts to send: a built-in set, or a file of the person's own."""

import csv
import io
import random
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from measurements import plan
from measurements.prompt_sets import SETS

MAX_FILE_BYTES = 64 * 1024 * 1024


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


def load(source: str) -> list[Prompt]:
    """Return the prompts of a built-in set or a file; PromptError where there are none."""
    if source in SETS:
        return [Prompt(f"{source}-{n}", text) for n, text in enumerate(SETS[source](), 1)]
    path = Path(source)
    readers = {
        ".txt": _from_lines,
        ".jsonl": _from_jsonl,
        ".json": _from_json_list,
        ".csv": _from_csv,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(SETS)
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
