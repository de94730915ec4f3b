"""One request on one connection: HTTP, event stream, chunks and reply put together. No I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from measurements import chunks
from measurements.chunks import Chunk, NotAChunkError
from measurements.connection import Read, words
from measurements.event_stream import Event, EventDecoder, EventTooLongError
from measurements.http1 import HttpError, Response
from measurements.reply import Ending, Notice, Reply, Status, Token, notices

ERROR_BODY_LIMIT = 65_536  # bytes of an error's body that are kept
# After the last token a server may still send usage and [DONE]; so long is waited for them.
LAST_WORDS_NS = 10_000_000_000
# [DONE] has come: nothing else is due but the end of the HTTP body.
BODY_END_NS = 250_000_000


@dataclass(frozen=True)
class Sink:
    """Who takes what a read brought: never an empty list."""

    tokens: Callable[[list[Token]], None]
    notices: Callable[[list[Notice]], None]


@dataclass(frozen=True)
class Limits:
    """How long one request may take, in ns."""

    total_ns: int
    idle_ns: int  # silence within a stream


class Exchange:
    """Reads of a connection in; tokens and notices out as they come, one ending at the end."""

    def __init__(self, limits: Limits, sink: Sink, reply: Reply | None = None) -> None:
        self.reply = reply or Reply()
        self.ending: Ending | None = None
        self.http_status: int | None = None
        self._limits = limits
        self._sink = sink
        self._response = Response()
        self._events = EventDecoder()
        self._saw_event = False
        self._done_seen = False
        self._other_body = bytearray()  # what came where an event stream was expected
        self._body_since_ns: int | None = None  # the last byte of the body

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request."""
        return self._response.reusable

    def receive(self, read: Read) -> None:
        """Take one read; `ending` is set when it was the last."""
        if not read.data:
            self._connection_ended(read)
            return
        try:
            body = self._response.feed(read.data)
            self._body(body, read)
        except (HttpError, EventTooLongError) as error:
            self.reply.error = self.reply.error or str(error)
            self._end(Ending(Status.STREAM_ERROR, str(error)))
            return
        if self._response.complete:
            self._body_ended(read)
            self._end(Ending(Status.OK))

    def check(self, now_ns: int) -> None:
        """End the request if it has taken too long."""
        since_send_ns = now_ns - self.reply.sent_ns
        silence_ns = 0 if self._body_since_ns is None else now_ns - self._body_since_ns
        if self.reply.finished and silence_ns > self._last_words_ns():
            self._end(Ending(Status.OK))
        elif since_send_ns > self._limits.total_ns:
            limit = f"{self._limits.total_ns / 1e9:g}"
            self._end(Ending(Status.TIMEOUT, f"not complete within {limit} s"))
        elif silence_ns > self._limits.idle_ns:
            limit = f"{self._limits.idle_ns / 1e9:g}"
            self._end(Ending(Status.STALLED, f"nothing came for {limit} s"))

    def cancel(self, reason: str) -> None:
        """End the request because nobody wants it any more."""
        self._end(Ending(Status.CANCELLED, reason))

    def _body(self, body: bytes, read: Read) -> None:
        self.http_status = self._response.status
        if not body:
            return
        self._body_since_ns = read.at_ns
        if not self._response.streams:
            self._other_body += body[: ERROR_BODY_LIMIT - len(self._other_body)]
            return
        events = self._events.feed(body)
        if events:
            self._saw_event = True
            was_done, found = self._done_seen, self._chunks(events)
            if tokens := self.reply.take(found, read):
                self._sink.tokens(tokens)
            silent = notices(found, read.at_ns) if len(tokens) < len(found) else []
            if self._done_seen and not was_done:
                silent.append(Notice(read.at_ns, "done"))
            if silent:
                self._sink.notices(silent)

    def _body_ended(self, read: Read) -> None:
        """Note the whole end of a stream that did not say [DONE]."""
        if self._saw_event and not self._done_seen:
            self._sink.notices([Notice(read.at_ns, "end")])

    def _last_words_ns(self) -> int:
        return BODY_END_NS if self._done_seen else min(LAST_WORDS_NS, self._limits.idle_ns)

    def _chunks(self, events: Sequence[Event]) -> list[Chunk]:
        found: list[Chunk] = []
        for event in events:
            if event.data == b"[DONE]":
                self._done_seen = True
                self.reply.done()
            elif event.name == b"error":
                found.append(Chunk(error=chunks.error_message(event.data)))
            elif event.data:
                found.append(_chunk(event.data))
        return found

    def _connection_ended(self, read: Read) -> None:
        if read.error is not None:
            self._end(Ending(Status.RESET, f"the connection was lost: {words(read.error)}"))
            return
        self._response.feed_eof()
        if self._response.complete:
            self._body_ended(read)
        if not self._response.begun:
            self._end(Ending(Status.RESET, "the server closed the connection without an answer"))
        elif self._response.complete or self._saw_event:
            self._end(Ending(Status.OK))
        else:
            self._end(Ending(Status.TRUNCATED, "the server closed the connection in mid-answer"))

    def _end(self, transport: Ending) -> None:
        if self.ending is None:
            self.ending = self._judged(transport)

    def _judged(self, transport: Ending) -> Ending:
        """Say how the exchange ended: the answer's head speaks first, then its stream."""
        response = self._response
        if response.status is None or transport.status is Status.CANCELLED:
            return self.reply.ending(transport)
        message = chunks.error_message(bytes(self._other_body)) if self._other_body else ""
        if not response.is_success:
            reason = f"HTTP {response.status}" + (f": {message}" if message else "")
            return Ending(Status.HTTP_ERROR, reason)
        if transport.status is not Status.OK:
            return self.reply.ending(transport)
        if not response.is_event_stream:
            kind = response.content_type or "of no content type"
            told = f": {message}" if message else ""
            reason = f"the answer is not an event stream but {kind}{told}"
            return Ending(Status.NOT_EVENT_STREAM, reason)
        if not self._saw_event:
            reason = f"the answer ({response.content_type}) is not an event stream: it is empty"
            return Ending(Status.NOT_EVENT_STREAM, reason)
        return self.reply.ending(transport)


def _chunk(data: bytes) -> Chunk:
    try:
        return chunks.decode(data)
    except NotAChunkError as error:
        return Chunk(error=str(error))
