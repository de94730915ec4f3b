"""HTTP/1.1: requests to bytes, and responses by httptools: bytes in, the body's bytes out. Pure."""

import re
import zlib
from collections.abc import Iterable
from typing import Protocol, cast

import httptools

HEAD_LIMIT = 65_536  # bytes of a head, or of whatever comes without bringing a body on
UNPACKED_LIMIT = 16 * 1024 * 1024  # bytes into which one read may unpack
SHORTEST_KEEP_ALIVE_S = 3  # longer than our own limit for reuse, by a second
_SUCCESS = range(200, 300)
_INTERIM = range(100, 200)
_UNFIT = re.compile(rb"[\r\n\0]")
_KEEP_ALIVE_S = re.compile(rb"timeout\s*=\s*(\d{1,9})", re.IGNORECASE)


class RequestError(ValueError):
    """A request that cannot be written as HTTP, in one sentence."""


class HttpError(ValueError):
    """An answer that is not HTTP as it should be, in one sentence."""


class HeadTooLongError(HttpError):
    """A head that is longer than any server's, or never ends."""


class UnpackedTooLongError(HttpError):
    """A few packed bytes that unpack to more than anybody wants to hold."""


class _Inflater(Protocol):
    unconsumed_tail: bytes

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def request_head(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return request line and headers, each with its line end; RequestError where one breaks it."""
    lines = [b"%s %s HTTP/1.1" % (method.encode("ascii"), target)]
    lines += [b"%s: %s" % header for header in headers]
    for line in lines:
        if _UNFIT.search(line):
            name = line.partition(b":")[0].decode("latin-1")
            raise RequestError(f"{name!r}: a header may hold no line end and no zero byte.")
    return b"\r\n".join(lines) + b"\r\n"


class Response:
    """One response as it arrives; with `inflate`, gzip and deflate are unpacked."""

    def __init__(self, *, inflate: bool = True, head_only: bool = False) -> None:
        self.status: int | None = None  # known once the head is complete
        self.headers: list[tuple[bytes, bytes]] = []
        self.content_type = ""  # as the server wrote it, for a sentence
        self.streams = False  # the request was accepted, and events follow
        self.complete = False
        self.begun = False
        self._parser = httptools.HttpResponseParser(self)
        self._inflate = inflate
        self._head_only = head_only
        self._body: list[bytes] = []
        self._keep_alive = False
        self._framed = False  # the body's end is known without closing the connection
        self._surplus = False  # more came than the answer
        self._inflater: _Inflater | None = None
        self._headers_size = 0
        self._without_body = 0  # bytes since the last one of the body

    @property
    def http_version(self) -> str:
        """Return the version that the server speaks."""
        return f"HTTP/{self._parser.get_http_version()}"

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
        return self.complete and self._framed and self._keep_alive and not self._surplus

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the connection and return the body's bytes among them."""
        if self.complete:
            raise HttpError("bytes came after the end of the answer")
        self.begun = True
        self._without_body += len(data)
        self._parse(data)
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        return body

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.complete:
                if isinstance(error.__context__, HttpError):
                    raise error.__context__ from None
                raise HttpError(f"the answer is not HTTP/1.1: {error}") from error
            self._surplus = True
        endless = self._without_body > HEAD_LIMIT and not self.complete
        if endless or self._headers_size > HEAD_LIMIT:
            raise HeadTooLongError(f"the answer's head is longer than {HEAD_LIMIT // 1024} KiB")

    def feed_eof(self) -> None:
        """Take the connection's end: it completes a body that has no other end."""
        if self.status is not None and not self._framed:
            self.complete = True

    def on_message_begin(self) -> None:
        """Refuse a second answer (called by the parser)."""
        if self.complete:
            raise HttpError("bytes came after the end of the answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header and note those that matter (called by the parser)."""
        self._headers_size += len(name) + len(value) + len(b": \r\n")
        if self.status is not None:  # a trailer
            return
        self.headers.append((name, value))
        key, word = name.lower(), value.strip().lower()
        if key == b"content-type":
            self.content_type = value.decode("latin-1")
        elif key == b"content-length" or (key == b"transfer-encoding" and b"chunked" in word):
            self._framed = True
        elif self._inflate and key == b"content-encoding" and word in {b"gzip", b"deflate"}:
            self._inflater = cast("_Inflater", zlib.decompressobj(wbits=zlib.MAX_WBITS | 32))

    def on_headers_complete(self) -> None:
        """Note status and keep-alive (called by the parser)."""
        status = self._parser.get_status_code()
        if status in _INTERIM:
            self.headers.clear()
            return
        self.status = status
        self.streams = self.is_success and self.is_event_stream
        self._keep_alive = self._parser.should_keep_alive() and not self._closes_soon()
        self.complete = self._head_only

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body (called by the parser)."""
        self._without_body = 0
        if self._head_only:
            self._surplus = True
            return
        self._body.append(data if self._inflater is None else _unpacked(self._inflater, data))

    def on_message_complete(self) -> None:
        """Note the end, but not that of an interim answer (called by the parser)."""
        self.complete = self.status is not None

    def _closes_soon(self) -> bool:
        """Whether the server says that it closes a silent connection before we would."""
        told = [value for name, value in self.headers if name.lower() == b"keep-alive"]
        limits = [int(found[1]) for value in told if (found := _KEEP_ALIVE_S.search(value))]
        return any(limit_s < SHORTEST_KEEP_ALIVE_S for limit_s in limits)


def _unpacked(inflater: _Inflater, data: bytes) -> bytes:
    try:
        unpacked = inflater.decompress(data, UNPACKED_LIMIT)
    except zlib.error as error:
        raise HttpError(f"the answer is not HTTP/1.1: {error}") from error
    if inflater.unconsumed_tail:
        raise UnpackedTooLongError(f"one read unpacks to more than {UNPACKED_LIMIT // 2**20} MiB")
    return unpacked
