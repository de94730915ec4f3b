"""One request's life: chunks with their arrivals in, what is logged out. Pure.

The definitions of TTFT, TTFT to answer, TPOT and E2E live here (`docs/architecture.md`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from measurements.chunks import Chunk, Kind, Piece
from measurements.clock import ClockName


class Status(StrEnum):
    """How a request ended."""

    OK = "ok"
    TRUNCATED = "truncated"
    RESET = "reset"
    STALLED = "stalled"
    TIMEOUT = "timeout"
    HTTP_ERROR = "http_error"
    STREAM_ERROR = "stream_error"
    NOT_EVENT_STREAM = "not_event_stream"
    REFUSED = "refused"
    CANCELLED = "cancelled"


class Ending(NamedTuple):
    """How a request ended, and why, in a sentence (empty where all is well)."""

    status: Status
    reason: str = ""


class Arrival(Protocol):
    """What a reply has to know of a read: see `connection.Read`."""

    @property
    def at_ns(self) -> int:
        """When it arrived, monotonic."""

    @property
    def clock(self) -> ClockName:
        """Where that time comes from."""

    @property
    def lag_ns(self) -> int:
        """How long it may have waited for us."""


class Token(NamedTuple):
    """One arrival with generated text: a row of tokens.csv."""

    number: int  # within the reply, from 0
    at_ns: int
    tokens: int | None  # None where the server does not count along
    kind: Kind
    burst: int  # chunks with generated text in the same read; 1: it came alone
    clock: ClockName
    pieces: tuple[Piece, ...]


What = Literal["role", "empty", "finish", "usage", "done", "end"]


class Notice(NamedTuple):
    """One arrival without generated text: a row of events.csv."""

    at_ns: int
    what: What


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a reply comes to. None: not measured. Latencies are there for status ok alone."""

    ttft_ns: int | None = None
    ttft_answer_ns: int | None = None
    tpot_ns: float | None = None
    e2e_ns: int | None = None
    queue_ns: int | None = None
    prefill_ns: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str = ""
    response_id: str = ""
    client_lag_ns: int | None = None
    clock: str = ""


class Reply:
    """The state of one reply. Times are monotonic ns."""

    def __init__(self, sent_ns: int = 0) -> None:
        self.sent_ns = sent_ns  # set in the moment of sending
        self.error = ""
        self.finished = False  # finish_reason or [DONE]: the reply is whole
        self.chunks_with_text = 0
        self._last_chunk = Chunk()
        self._finish_reason = ""
        self._finish_had_text = False
        self._response_id = ""
        self._first_ns: int | None = None
        self._answer_ns: int | None = None
        self._last_ns: int | None = None
        self._prompt_tokens: int | None = None
        self._cached_tokens: int | None = None
        self._output_tokens: int | None = None
        # completion_tokens up to the last chunk with text; None once a chunk came without a count
        self._counted: int | None = 0
        self._queue_ns: int | None = None
        self._prefill_ns: int | None = None
        self._lag_ns: int | None = None
        self._clock: ClockName = "kernel"

    def take(self, chunks: Sequence[Chunk], arrival: Arrival) -> list[Token]:
        """Take the chunks that one read completed; return the arrivals of generated text."""
        if self._lag_ns is None or arrival.lag_ns > self._lag_ns:
            self._lag_ns = arrival.lag_ns
        if arrival.clock == "user":
            self._clock = "user"
        burst = sum([1 for chunk in chunks if chunk.pieces])
        tokens: list[Token] = []
        for chunk in chunks:
            self._note(chunk)
            if chunk.pieces:
                tokens.append(self._token(chunk, arrival, burst))
        return tokens

    def done(self) -> None:
        """Take the [DONE] that ends a stream."""
        self.finished = True

    def ending(self, transport: Ending) -> Ending:
        """Return how the reply ended, given how its transport did."""
        if self.error:
            return Ending(Status.STREAM_ERROR, self.error)
        if self.finished:
            return Ending(Status.OK)
        if transport.status is Status.OK:
            return Ending(Status.TRUNCATED, "the stream ended without finish_reason or [DONE]")
        return transport

    def figures(self, ending: Ending) -> Figures:
        """Return what the reply comes to; no latency unless it ended well."""
        good = ending.status is Status.OK
        first_ns, answer_ns, last_ns = self._first_ns, self._answer_ns, self._last_ns
        return Figures(
            ttft_ns=self._since_send(first_ns) if good else None,
            ttft_answer_ns=self._since_send(answer_ns) if good else None,
            tpot_ns=self._tpot_ns() if good else None,
            e2e_ns=self._since_send(last_ns) if good else None,
            queue_ns=self._queue_ns,
            prefill_ns=self._prefill_ns,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            output_tokens=self._output_tokens,
            finish_reason=self._finish_reason,
            response_id=self._response_id,
            client_lag_ns=self._lag_ns,
            clock=self._clock if self._lag_ns is not None else "",
        )

    def _note(self, chunk: Chunk) -> None:
        if chunk.error:
            self.error = self.error or chunk.error
        if chunk.finish_reason:
            self.finished = True
            self._finish_reason = chunk.finish_reason
            self._finish_had_text = bool(chunk.pieces)
        if chunk.response_id and not self._response_id:
            self._response_id = chunk.response_id
        if chunk.usage is not None:
            usage = chunk.usage
            self._prompt_tokens = _known(usage.prompt, self._prompt_tokens)
            self._cached_tokens = _known(usage.cached, self._cached_tokens)
            self._output_tokens = _known(usage.completion, self._output_tokens)
        if chunk.queue_ns is not None:
            self._queue_ns = chunk.queue_ns
        if chunk.prefill_ns is not None:
            self._prefill_ns = chunk.prefill_ns

    def _token(self, chunk: Chunk, arrival: Arrival, burst: int) -> Token:
        kind = _kind(chunk.pieces)
        if self._first_ns is None:
            self._first_ns = arrival.at_ns
        if self._answer_ns is None and kind == "content":
            self._answer_ns = arrival.at_ns
        self._last_ns = arrival.at_ns
        number = self.chunks_with_text
        self.chunks_with_text += 1
        count = self._count(chunk)
        return Token(number, arrival.at_ns, count, kind, burst, arrival.clock, chunk.pieces)

    def _count(self, chunk: Chunk) -> int | None:
        """Return the chunk's tokens: those counted since the last chunk with text.

        A token without text of its own (half a character) thus belongs to the chunk that shows it.
        """
        before = self._counted
        self._counted = None if chunk.usage is None else chunk.usage.completion
        if before is None or self._counted is None or self._counted <= before:
            return None
        return self._counted - before

    def _tpot_ns(self) -> float | None:
        """TPOT = (last token - first token) / (tokens that arrived - 1)."""
        arrived = self._arrived()
        if not arrived or arrived == 1 or self._first_ns is None or self._last_ns is None:
            return None
        return (self._last_ns - self._first_ns) / (arrived - 1)

    def _arrived(self) -> int | None:
        """Return how many tokens arrived as text, where that is known."""
        if self._counted:
            return self._counted
        if self._output_tokens is None:
            return None
        # A natural stop's end-of-sequence token is in the usage, though its chunk is empty.
        silent_end = self._finish_reason != "length" and not self._finish_had_text
        if silent_end and self._output_tokens == self.chunks_with_text + 1:
            return self.chunks_with_text
        return self._output_tokens

    def _since_send(self, at_ns: int | None) -> int | None:
        return None if at_ns is None else at_ns - self.sent_ns


def _kind(pieces: Sequence[Piece]) -> Kind:
    if len(pieces) == 1:
        return pieces[0][0]
    kinds = [kind for kind, _ in pieces]
    return "content" if "content" in kinds else kinds[0]


def notices(chunks: Sequence[Chunk], at_ns: int) -> list[Notice]:
    """Return what came in a read besides generated text."""
    silent = (chunk for chunk in chunks if not chunk.pieces)
    return [Notice(at_ns, what) for chunk in silent if (what := _what(chunk)) is not None]


def _what(chunk: Chunk) -> What | None:
    if not chunk.choices:
        return None if chunk.usage is None else "usage"
    if chunk.finish_reason:
        return "finish"
    return "role" if chunk.role else "empty"


def _known(new: int | None, old: int | None) -> int | None:
    return old if new is None else new
