"""The run folder as it grows: rows and text, appended and flushed in whole buffers.

Times come in monotonic ns and are written as seconds since the run began, with 9 decimals.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from measurements.reply import Ending, Figures, Notice, Token
from measurements.run_folder import columns
from measurements.states import RunState

TEXT_FILE = "text.jsonl"
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r")
_LINE_ENDS = re.compile(r"[\r\n]+")
_APPEND_TO_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request as it is sent."""

    request_id: int
    planned_ns: int
    sent_ns: int
    concurrency: int
    warmup: bool
    prompt_id: str
    worker: int = 0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One request as it ends. `sent_ns` is None where no connection could be opened."""

    request_id: int
    concurrency: int
    warmup: bool
    planned_ns: int
    sent_ns: int | None
    connect_ns: int | None  # None: the connection was open already
    figures: Figures
    ending: Ending
    http_status: int | None
    prompt_id: str


class Lines:
    """One append-only file, which must be new: lines are collected, `flush` writes them whole."""

    def __init__(self, path: Path, header: str = "") -> None:
        self.path = path
        self._file = os.open(path, _APPEND_TO_NEW, 0o644)
        self._lines: list[str] = [header] if header else []
        self._unwritten = b""

    def add(self, line: str) -> None:
        """Collect a line, which ends with a line end."""
        self._lines.append(line)

    def flush(self) -> None:
        """Write what was collected. After an OSError the next call goes on at the same byte."""
        if self._lines:
            self._unwritten += "".join(self._lines).encode("utf-8", "replace")
            self._lines.clear()
        while self._unwritten:
            written = os.write(self._file, self._unwritten)
            self._unwritten = self._unwritten[written:]

    def close(self) -> None:
        """Close the file without flushing."""
        os.close(self._file)


class Writer:
    """All files of one run that the worker appends to."""

    def __init__(self, folder: Path, began_ns: int, *, keep_text: bool = True) -> None:
        self._began_ns = began_ns
        self._files = {
            name: Lines(folder / name, ",".join(header) + "\n")
            for name, header in columns.FILES.items()
        }
        self._tokens = self._files["tokens.csv"]
        self._events = self._files["events.csv"]
        self._text = Lines(folder / TEXT_FILE) if keep_text else None
        self.flush()

    def sent(self, row: Sent) -> None:
        """Append to sends.csv."""
        self._row(
            "sends.csv",
            row.request_id,
            self._at(row.planned_ns),
            self._at(row.sent_ns),
            row.concurrency,
            int(row.warmup),
            row.worker,
            row.prompt_id,
        )

    def tokens(self, request_id: int, sent_ns: int, tokens: list[Token]) -> None:
        """Append to tokens.csv and text.jsonl."""
        for token in tokens:
            at_s = f"{(token.at_ns - self._began_ns) / 1e9:.9f}"
            since_s = f"{(token.at_ns - sent_ns) / 1e9:.9f}"
            count = "" if token.tokens is None else token.tokens
            self._tokens.add(
                f"{request_id},{token.number},{at_s},{since_s},{count},"
                f"{token.kind},{token.burst},{token.clock}\n"
            )
            if self._text is not None:
                for kind, text in token.pieces:
                    piece = _encode(text).decode()
                    self._text.add(
                        f'{{"request_id":{request_id},"at_s":{at_s},"kind":"{kind}","text":{piece}}}\n'
                    )

    def notices(self, request_id: int, sent_ns: int, notices: list[Notice]) -> None:
        """Append to events.csv."""
        for notice in notices:
            at_s = f"{(notice.at_ns - self._began_ns) / 1e9:.9f}"
            since_s = f"{(notice.at_ns - sent_ns) / 1e9:.9f}"
            self._events.add(f"{request_id},{at_s},{since_s},{notice.what}\n")

    def ended(self, row: Ended) -> None:
        """Append to requests.csv."""
        figures = row.figures
        self._row(
            "requests.csv",
            row.request_id,
            figures.response_id,
            row.concurrency,
            int(row.warmup),
            self._at(row.planned_ns),
            None if row.sent_ns is None else self._at(row.sent_ns),
            _seconds(row.connect_ns),
            _seconds(figures.queue_ns),
            _seconds(figures.prefill_ns),
            _seconds(figures.ttft_ns),
            _seconds(figures.ttft_answer_ns),
            _seconds(figures.tpot_ns),
            _seconds(figures.e2e_ns),
            figures.prompt_tokens,
            figures.cached_tokens,
            figures.output_tokens,
            figures.finish_reason,
            row.ending.status.value,
            row.http_status,
            row.ending.reason,
            _seconds(figures.client_lag_ns),
            figures.clock,
            row.prompt_id,
        )

    def load(self, at_ns: int, state: RunState, concurrency: int, *, held: bool) -> None:
        """Append to load.csv."""
        self._row("load.csv", self._at(at_ns), state.value, concurrency, int(held))

    def client(self, at_ns: int, values: Sequence[float | None]) -> None:
        """Append to client.csv: the columns after `at_s`."""
        self._row("client.csv", self._at(at_ns), *values)

    def server_metrics(self, at_ns: int, values: Sequence[float | None]) -> None:
        """Append to server_metrics.csv: the columns after `at_s`."""
        self._row("server_metrics.csv", self._at(at_ns), *values)

    def flush(self) -> None:
        """Write everything collected; OSError, with the file's name, where that fails."""
        for file in self._all():
            try:
                file.flush()
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file.path)) from error

    def close(self) -> None:
        """Flush and close."""
        try:
            self.flush()
        finally:
            for file in self._all():
                file.close()

    def _all(self) -> tuple[Lines, ...]:
        return (*self._files.values(), *((self._text,) if self._text is not None else ()))

    def _at(self, at_ns: int) -> "Seconds":
        return Seconds(at_ns - self._began_ns)

    def _row(self, name: str, *values: object) -> None:
        self._files[name].add(",".join(map(field, values)) + "\n")


class Seconds(int):
    """A number of ns that is written as seconds."""

    __slots__ = ()


def field(value: object) -> str:
    """Return one CSV field: numbers as they are, text made harmless and quoted where needed."""
    if value is None:
        return ""
    if isinstance(value, Seconds):
        return f"{value / 1e9:.9f}"
    if isinstance(value, str):
        return text_field(value)
    if isinstance(value, float):
        return f"{value:.15g}"  # totals of a long-lived engine keep their last digits
    return str(value)


def text_field(text: str) -> str:
    """Return text as one line that no spreadsheet runs, quoted by RFC 4180 where it has to be."""
    if text.startswith(_FORMULA_START):
        text = "'" + text
    text = _LINE_ENDS.sub(" ", text)
    if '"' in text or "," in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _seconds(duration_ns: float | None) -> Seconds | None:
    return None if duration_ns is None else Seconds(round(duration_ns))


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by `value` as JSON in one step, so that a reader never sees half of it."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(msgspec.json.format(_encode(value), indent=2) + b"\n")
    beside.replace(path)
