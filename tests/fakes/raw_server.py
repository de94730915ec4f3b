"""A server that says exactly the bytes that a test wants, in the test's own loop."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"
LINGER_0 = struct.pack("ii", 1, 0)


@dataclass
class Peer:
    """One client's connection, as the server sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    closed: bool = False  # by the client
    gone: bool = False  # closed by both sides

    async def say(self, data: bytes) -> None:
        """Send and let the client's loop poll, so that it reads this alone."""
        self.writer.write(data)
        for _ in range(3):
            await asyncio.sleep(0)

    def reset(self) -> None:
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        self.writer.transport.abort()

    async def until_closed(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass
        self.closed = True


Answer = Callable[[Peer], Awaitable[Any]]


@dataclass
class RawServer:
    port: int = 0
    scheme: str = "http"
    requests: list[bytes] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"


@asynccontextmanager
async def serving(answer: Answer, **options: Any) -> AsyncIterator[RawServer]:
    """Serve: `answer` is called for each whole request; when it returns, the next may come."""
    server = RawServer(scheme="https" if options.get("ssl") else "http")
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        peer = Peer(reader, writer)
        server.peers.append(peer)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await _serve(server, peer, answer)
        writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()
        peer.gone = True

    async with await asyncio.start_server(connected, "127.0.0.1", 0, **options) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield server
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


async def _serve(server: RawServer, peer: Peer, answer: Answer) -> None:
    while not peer.writer.is_closing():
        try:
            server.requests.append(await _request(peer.reader))
        except asyncio.IncompleteReadError:
            peer.closed = True
            return
        await answer(peer)


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        return head + await reader.readuntil(b"0\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + await reader.readexactly(int(length or 0))


def always(data: bytes) -> Answer:
    """Answer every request with these bytes."""

    async def answer(peer: Peer) -> None:
        await peer.say(data)

    return answer
