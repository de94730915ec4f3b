"""httpx2 over the lab's own connections: the openai client, and when its bytes arrived.

    httpx2.AsyncClient(transport=Transport())

A response's `extensions` hold `sent_ns` (just before its request left), `connect_ns` (setting up
the connection; None where an open one was used again) and `arrivals`, a list of `BodyRead` that
grows with the body. Requests always go directly to their server, never through a proxy; none is
sent twice; there is no limit on connections.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from time import monotonic_ns
from typing import NamedTuple

import httpx2

from measurements.clock import ClockName
from measurements.connection import Connection, Read, words
from measurements.http1 import HttpError, RequestError, Response, request_head
from measurements.pool import EndpointError, Pool, resolve
from measurements.pump import Pump


class BodyRead(NamedTuple):
    """One read that brought bytes of the body. TLS and some systems know only user times."""

    end: int  # bytes of the body that have come with it and before; as sent, packed or not
    at_ns: int  # arrival of the newest of them, monotonic
    clock: ClockName
    lag_ns: int  # how long it may have waited for us


class Transport(httpx2.AsyncBaseTransport):
    """Connections of one event loop, to whatever servers are asked."""

    def __init__(self) -> None:
        self._pump: Pump | None = None
        self._pools: dict[str, Pool] = {}
        self._answers: set[_Answer] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request once and return its response as soon as the head is there.

        Whatever goes wrong is one of httpx2's own exceptions, here and while the body is read.
        """
        payload = await _payload(request)
        limits = request.extensions.get("timeout", {})
        pool = await self._pool(request.url, limits.get("connect"))
        connection = pool.take() or await _opened(pool, limits.get("connect"))
        connect_ns = connection.connect_ns or None
        response = Response(inflate=False, head_only=request.method == "HEAD")
        answer = _Answer(response, pool, connection, limits.get("read"), self._answers)
        sent_ns = monotonic_ns()
        connection.send(payload)
        await answer.head()
        extensions = {
            "http_version": response.http_version.encode(),
            "sent_ns": sent_ns,
            "connect_ns": connect_ns,
            "arrivals": answer.arrivals,
        }
        return httpx2.Response(
            response.status or 0, headers=response.headers, stream=answer, extensions=extensions
        )

    async def aclose(self) -> None:
        """Close every connection; whoever still waits for an answer gets a ReadError."""
        for answer in tuple(self._answers):
            answer.end(httpx2.ReadError("the client was closed"))
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def _pool(self, url: httpx2.URL, limit_s: float | None) -> Pool:
        if url.scheme not in {"http", "https"}:
            raise httpx2.UnsupportedProtocol(f"the address {url} is not http:// or https://")
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if origin not in self._pools:
            if self._pump is None:
                # Somebody waits for each read.
                self._pump = Pump(asyncio.get_running_loop(), batch_s=0)
            try:
                async with asyncio.timeout(limit_s):
                    endpoint = await resolve(origin)
            except TimeoutError as error:
                raise httpx2.ConnectTimeout(f"{url.host} is not resolved in time") from error
            except EndpointError as error:
                raise httpx2.ConnectError(str(error)) from error
            if origin not in self._pools:  # still: another request may have been as far
                self._pools[origin] = Pool(endpoint, self._pump)
        return self._pools[origin]


async def _payload(request: httpx2.Request) -> bytes:
    body = await request.aread()
    try:
        head = request_head(request.method, request.url.raw_path, request.headers.raw)
    except RequestError as error:
        raise httpx2.LocalProtocolError(str(error)) from error
    if "chunked" in request.headers.get("transfer-encoding", "").lower():
        body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    return head + b"\r\n" + body


async def _opened(pool: Pool, limit_s: float | None) -> Connection:
    try:
        return await pool.open(limit_s)
    except OSError as error:
        kind = httpx2.ConnectTimeout if isinstance(error, TimeoutError) else httpx2.ConnectError
        raise kind(f"no connection to {pool.endpoint.name}: {words(error)}") from error


class _Answer(httpx2.AsyncByteStream):
    """One response while it comes: the body's bytes for httpx2, and what they are known by."""

    def __init__(
        self,
        response: Response,
        pool: Pool,
        connection: Connection,
        limit_s: float | None,
        alive: "set[_Answer]",
    ) -> None:
        self.arrivals: list[BodyRead] = []
        self._response = response
        self._pool = pool
        self._connection = connection
        self._limit_s = limit_s  # of silence
        self._alive = alive
        self._error: httpx2.TransportError | None = None
        self._pieces: deque[bytes] = deque()
        self._size = 0  # bytes of the body that have come
        self._held = 0  # those of them that nobody has taken
        self._news = asyncio.Event()
        alive.add(self)
        connection.receiver = self._receive

    async def head(self) -> None:
        """Return when status and headers are known."""
        while self._response.status is None and self._error is None:
            await self._next_news()
        if self._error is not None and self._response.status is None:
            raise self._error  # later ones come after the body's bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while self._pieces or self in self._alive:
                if not self._pieces:
                    await self._next_news()
                    continue
                piece = self._pieces.popleft()
                self._hold(-len(piece))
                yield piece
            if self._error is not None:
                raise self._error
        finally:
            self._hang_up()

    async def aclose(self) -> None:
        """Close the connection at once unless the whole answer has come."""
        self._hang_up()

    def end(self, error: httpx2.TransportError | None) -> None:
        """Let the connection go: to be used again after a whole answer, else closed at once."""
        if self not in self._alive:
            return
        self._alive.discard(self)
        self._error = error
        self._connection.hold(-self._held)
        self._pool.give_back(self._connection, reusable=error is None and self._response.reusable)
        self._news.set()

    def _hang_up(self) -> None:
        self._pieces.clear()
        self.end(httpx2.ReadError("the answer was closed before its end"))

    async def _next_news(self) -> None:
        """Wait for the next read or the end; whoever is cancelled meanwhile hangs up."""
        self._news.clear()
        try:
            async with asyncio.timeout(self._limit_s):
                await self._news.wait()
        except TimeoutError:
            # A loop that was busy elsewhere may see the limit pass before it sees the bytes.
            if self in self._alive and self._connection.is_quiet():
                self.end(httpx2.ReadTimeout(f"nothing came for {self._limit_s or 0:g} s"))
        except BaseException:
            self._hang_up()
            raise

    def _receive(self, read: Read) -> None:
        if not read.data:
            self._connection_ended(read.error)
            return
        try:
            body = self._response.feed(read.data)
        except HttpError as error:
            self.end(httpx2.RemoteProtocolError(str(error)))
            return
        if body:
            self._size += len(body)
            self.arrivals.append(BodyRead(self._size, read.at_ns, read.clock, read.lag_ns))
            self._pieces.append(body)
            self._hold(len(body))
        if self._response.complete:
            self.end(None)
        self._news.set()

    def _connection_ended(self, error: OSError | None) -> None:
        self._response.feed_eof()
        if error is not None:
            self.end(httpx2.ReadError(f"the connection was lost: {words(error)}"))
        elif self._response.complete:
            self.end(None)
        else:
            where = "in mid-answer" if self._response.begun else "without an answer"
            self.end(httpx2.RemoteProtocolError(f"the server closed the connection {where}"))

    def _hold(self, size: int) -> None:
        self._held += size
        if self in self._alive:
            self._connection.hold(size)
