"""Streams as a server may write them, and an exchange that is fed with them at given times."""

import itertools
import json
from typing import Any, NamedTuple

from measurements.connection import Read
from measurements.exchange import Exchange, Limits, Sink
from measurements.reply import Ending, Figures, Notice, Token

MS = 1_000_000
SENT_NS = 7_000 * MS
LIMITS = Limits(total_ns=600_000 * MS, idle_ns=120_000 * MS)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Any, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def content(text: str, **more: Any) -> bytes:
    return chunk({"content": text}, **more)


def usage(completion: int) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": completion}})


ROLE = chunk({"role": "assistant", "content": ""})
FIN = chunk({}, "stop")


class Played(NamedTuple):
    tokens: list[Token]
    ending: Ending | None
    figures: Figures
    http_status: int | None
    reusable: bool
    notices: list[Notice]

    @property
    def text(self) -> str:
        return "".join(text for token in self.tokens for _, text in token.pieces)

    @property
    def gaps_ms(self) -> list[float]:
        times = [token.at_ns for token in self.tokens]
        return [(b - a) / MS for a, b in itertools.pairwise(times)]


def read(data: bytes, at_ms: float = 0, error: OSError | None = None) -> Read:
    at_ns = SENT_NS + round(at_ms * MS)
    return Read(data, at_ns, "kernel", at_ns + MS // 10, MS // 10, error)


def play(
    *writes: tuple[float, bytes],
    head: bytes = HEAD,
    closes: bool = True,
    error: OSError | None = None,
    checked_ms: float | None = None,
    limits: Limits = LIMITS,
) -> Played:
    """Feed an exchange with a head, then `writes` (ms since send, bytes), then the close."""
    tokens: list[Token] = []
    notices: list[Notice] = []
    exchange = Exchange(limits, Sink(tokens.extend, notices.extend))
    exchange.reply.sent_ns = SENT_NS
    if head:
        exchange.receive(read(head, 1))
    for at_ms, data in writes:
        if exchange.ending is None:
            exchange.receive(read(data, at_ms))
    if checked_ms is not None:
        exchange.check(SENT_NS + round(checked_ms * MS))
    if closes and exchange.ending is None:
        exchange.receive(read(b"", writes[-1][0] + 1 if writes else 2, error))
    ending = exchange.ending
    figures = exchange.reply.figures(ending) if ending is not None else Figures()
    return Played(tokens, ending, figures, exchange.http_status, exchange.reusable, notices)
