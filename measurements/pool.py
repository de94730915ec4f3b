"""Where connections come from: an endpoint resolved once, and connections kept for reuse."""

import asyncio
import contextlib
import errno
import functools
import os
import socket
import ssl
import sys
from dataclasses import dataclass
from time import monotonic_ns
from urllib.parse import urlsplit

from measurements.connection import (
    Connection,
    ProtocolConnection,
    SocketConnection,
    keep_kernel_times,
)
from measurements.pump import Pump

# Servers close idle connections (uvicorn after 5 s). One idle for longer than this may be closed
# in the very moment in which we send, so it is replaced.
REUSE_WITHIN_NS = 2_000_000_000
CONNECT_LIMIT_S = 10.0


class EndpointError(Exception):
    """A URL that cannot be used, in one sentence."""


@dataclass(frozen=True)
class Endpoint:
    """A server: its addresses in the order in which they are tried."""

    host: str
    port: int
    tls: bool
    addresses: tuple[tuple[socket.AddressFamily, tuple[object, ...]], ...]

    @property
    def name(self) -> str:
        """Return host and port as a person writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


async def resolve(url: str) -> Endpoint:
    """Resolve the host of `url` once, for the whole run; raise EndpointError with a sentence."""
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
    except ValueError as error:
        raise EndpointError(f"{url} is no address of a server: {error}.") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise EndpointError(f"{url} is no address of a server: write http://host:port/v1.")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise EndpointError(f"The host {parts.hostname} is not known: {error}.") from error
    addresses = tuple((family, address) for family, _, _, _, address in found)
    return Endpoint(parts.hostname, port, tls, addresses)


def _is_fresh(connection: Connection) -> bool:
    return connection.is_quiet() and monotonic_ns() - connection.idle_since_ns <= REUSE_WITHIN_NS


class Pool:
    """Connections to one endpoint: opened before they are needed for a send, reused when idle."""

    def __init__(self, endpoint: Endpoint, pump: Pump) -> None:
        self.endpoint = endpoint
        self._pump = pump
        self._addresses = list(endpoint.addresses)
        # Reading the system's certificates takes milliseconds: once, and before anything is timed.
        self._tls = ssl.create_default_context() if endpoint.tls else None
        self._idle: list[Connection] = []
        self._in_use: set[Connection] = set()
        self._kernel_times = keep_kernel_times()

    def take(self) -> Connection | None:
        """Return an idle connection that the server has not closed, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if _is_fresh(connection):
                self._in_use.add(connection)
                return connection
            connection.close()
        return None

    async def stand_by(self, number: int) -> None:
        """Have `number` idle connections; what cannot be opened is left to a request to tell."""
        waiting, self._idle = self._idle, []
        for old in waiting:
            if _is_fresh(old):
                self._idle.append(old)
            else:
                old.close()
        missing = range(number - len(self._idle))
        outcomes = await asyncio.gather(*(self.open() for _ in missing), return_exceptions=True)
        for connection in outcomes:
            if isinstance(connection, BaseException):
                continue
            connect_ns = connection.connect_ns
            self.give_back(connection, reusable=True)
            connection.connect_ns = connect_ns  # its first request has that to tell

    async def open(self, limit_s: float | None = CONNECT_LIMIT_S) -> Connection:
        """Open a connection and time it; OSError where no address accepts one.

        TimeoutError, which is one, where none has done so after `limit_s` (None: no limit).
        """
        began_ns = monotonic_ns()
        try:
            async with asyncio.timeout(limit_s) as limit:
                connection = await self._first_that_accepts()
        except TimeoutError as error:
            if not limit.expired():  # the system's own limit
                raise
            raise TimeoutError(f"no connection within {limit_s:g} s") from error
        if connection.closed:  # the end came with the handshake, before anybody could receive it
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        connection.connect_ns = monotonic_ns() - began_ns
        self._in_use.add(connection)
        return connection

    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        """Take a connection back: kept if it can carry another request, else closed."""
        self._in_use.discard(connection)
        connection.receiver = None
        if reusable and connection.is_quiet():
            connection.connect_ns = 0
            connection.idle_since_ns = monotonic_ns()
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close every connection, in use or idle."""
        for connection in (*self._idle, *self._in_use):
            connection.close()
        self._idle.clear()
        self._in_use.clear()
        self._kernel_times.close()

    async def _first_that_accepts(self) -> Connection:
        last = OSError("the host has no address")
        for candidate in tuple(self._addresses):
            try:
                connection = await self._connect(*candidate)
            except OSError as error:
                last = error
                continue
            # Where localhost is ::1 first and the server has 127.0.0.1 only, ask there from now on.
            self._addresses.remove(candidate)
            self._addresses.insert(0, candidate)
            return connection
        raise last

    async def _connect(
        self, family: socket.AddressFamily, address: tuple[object, ...]
    ) -> Connection:
        loop = asyncio.get_running_loop()
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            if not self.endpoint.tls and sys.platform != "win32":
                return SocketConnection(sock, self._pump, loop)
            return await self._wrap(sock)
        except BaseException:
            with contextlib.suppress(OSError):
                sock.close()
            raise

    async def _wrap(self, sock: socket.socket) -> Connection:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _, connection = await asyncio.get_running_loop().create_connection(
            functools.partial(ProtocolConnection, self._pump),
            sock=sock,
            ssl=self._tls,
            server_hostname=self.endpoint.host if self._tls else None,
        )
        return connection
