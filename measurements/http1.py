"""HTTP/1.1 responses, by httptools: bytes in, the body's bytes out. Pure."""

import zlib
from typing import Protocol, cast

import httptools

_SUCCESS = range(200, 300)
_INTERIM = range(100, 200)


class HttpError(ValueError):
    """An answer that is not HTTP as it should be, in one sentence."""


class _Inflater(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class Response:
    """One response as it arrives."""

    def __init__(self) -> None:
        self.status: int | None = None  # known once the head is complete
        self.content_type = ""  # as the server wrote it, for a sentence
        self.complete = False
        self.begun = False
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._keep_alive = False
        self._framed = False  # the body's end is known without closing the connection
        self._inflater: _Inflater | None = None

    @property
    def is_success(self) -> bool:
        """Whether the status says that the request was accepted."""
        return self.status in _SUCCESS

    @property
    def is_event_stream(self) -> bool:
        """Whether the content type is that of an event stream."""
        return self.content_type.partition(";")[0].strip().lower() == "text/event-stream"

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request."""
        return self.complete and self._framed and self._keep_alive

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the connection and return the body's bytes among them."""
        if self.complete:
            raise HttpError("bytes came after the end of the answer")
        self.begun = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, zlib.error) as error:
            raise HttpError(f"the answer is not HTTP/1.1: {error}") from error
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        return body

    def feed_eof(self) -> None:
        """Take the connection's end: it completes a body that has no other end."""
        if self.status is not None and not self._framed:
            self.complete = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the headers that matter (called by the parser)."""
        key = name.lower()
        if key == b"content-type":
            self.content_type = value.decode("latin-1")
        elif key == b"content-length" or (key == b"transfer-encoding" and b"chunked" in value):
            self._framed = True
        elif key == b"content-encoding" and value.strip().lower() in {b"gzip", b"deflate"}:
            self._inflater = cast("_Inflater", zlib.decompressobj(wbits=zlib.MAX_WBITS | 32))

    def on_headers_complete(self) -> None:
        """Note status and keep-alive (called by the parser)."""
        status = self._parser.get_status_code()
        if status not in _INTERIM:
            self.status = status
            self._keep_alive = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body (called by the parser)."""
        self._body.append(data if self._inflater is None else self._inflater.decompress(data))

    def on_message_complete(self) -> None:
        """Note the end, but not that of an interim answer (called by the parser)."""
        self.complete = self.status is not None
