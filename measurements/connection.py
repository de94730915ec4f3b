"""Open connections: bytes out, and bytes in with the moment of their arrival.

Reading comes first: a readable socket is drained at once and its bytes are queued; whoever needs
them gets them from the pump, after every other readable socket has been drained too.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import NamedTuple, Protocol, cast

from measurements.clock import ArrivalClock, ClockName, Readings
from measurements.pump import Pump

READ_SIZE = 16_384  # small enough to be decoded within one slice
MOST_READS = 64  # of one socket, before the others have their turn
# Bytes of one connection that were read and not yet used. Reading comes first, but a server that
# sends faster than we decode may not fill the memory: beyond this its socket is left to fill up.
MOST_UNUSED = MOST_READS * READ_SIZE
_TIMESPEC = struct.Struct("@ll")
_ANCILLARY_SIZE = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0
# Python has no name for it; the number holds for every common Linux architecture.
SO_TIMESTAMPNS = 35 if sys.platform == "linux" else None


class Read(NamedTuple):
    """What one read of a connection gave. Empty data: the end, by `error` if there is one."""

    data: bytes
    at_ns: int  # arrival of the newest byte, monotonic
    clock: ClockName
    read_ns: int  # when we read it, monotonic
    lag_ns: int  # how long it may have waited for us
    error: OSError | None = None


Receiver = Callable[[Read], None]


class Connection(Protocol):
    """One open connection. Whatever comes while nobody receives makes it unfit for reuse."""

    receiver: Receiver | None
    idle_since_ns: int
    connect_ns: int

    @property
    def closed(self) -> bool:
        """Whether it can carry no further request."""

    def send(self, data: bytes) -> None:
        """Send all of `data`; what the socket does not take at once follows by itself."""

    def hold(self, size: int) -> None:
        """Count bytes that the receiver keeps (negative: has used); too many stop the reading."""

    def is_quiet(self) -> bool:
        """Return whether it is open and nothing has come: no byte, no end, read or unread."""

    def close(self) -> None:
        """Close at once; nothing is delivered after this."""


class _Delivery:
    """What both kinds of connection share: who receives, how much waits, and the end of it all."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self.receiver: Receiver | None = None
        self.closed = False
        self.idle_since_ns = 0
        self.connect_ns = 0
        self._ended = False  # the end was read
        self._queued = 0  # reads on their way to the receiver
        self._unused = 0  # bytes, in those reads and in the receiver's hold
        self._paused = False

    def _deliver(self, read: Read) -> None:
        self._ended = self._ended or not read.data
        if self.receiver is None:
            self.close()
            return
        self._queued += 1
        self.hold(len(read.data))
        self._pump.post(self._hand_over, self.receiver, read)

    def _hand_over(self, receiver: Receiver, read: Read) -> None:
        self._queued -= 1
        if self.receiver is receiver and not self.closed:
            receiver(read)
        self.hold(-len(read.data))

    def hold(self, size: int) -> None:
        self._unused += size
        if self.closed or self._ended:
            return
        if not self._paused and self._unused >= MOST_UNUSED:
            self._paused = True
            self._pause()
        elif self._paused and self._unused <= MOST_UNUSED // 2:
            self._paused = False
            self._resume()

    def is_quiet(self) -> bool:
        return not (self.closed or self._ended or self._queued)

    def close(self) -> None:
        self.closed = True
        self.receiver = None

    def _pause(self) -> None:
        raise NotImplementedError

    def _resume(self) -> None:
        raise NotImplementedError


def user_read(pump: Pump, data: bytes, error: OSError | None = None) -> Read:
    """Return a read that has no kernel time: it is as old as the loop's last poll at most."""
    now_ns = monotonic_ns()
    return Read(data, now_ns, "user", now_ns, pump.unpolled_ns(now_ns), error)


class SocketConnection(_Delivery):
    """A TCP connection on a non-blocking socket, with kernel receive times where there are any."""

    def __init__(self, sock: socket.socket, pump: Pump, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(pump)
        self._socket = sock
        self._loop = loop
        self._unsent = b""
        self._send_error: OSError | None = None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if SO_TIMESTAMPNS is not None:
            with contextlib.suppress(OSError):  # a kernel without it: user times
                sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        now_ns = monotonic_ns()
        self._clock = ArrivalClock(Readings(now_ns, now_ns, time_ns()))
        loop.add_reader(sock.fileno(), self._drain)

    def send(self, data: bytes) -> None:
        """Send all of `data`; a failure is delivered as the connection's end."""
        if self._unsent:
            self._unsent += data
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._send_failed(error)
            sent = len(data)
        self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._socket.fileno(), self._send_rest)

    def _send_failed(self, error: OSError) -> None:
        if self._ended:
            self._deliver(user_read(self._pump, b"", error))
            return
        # What the server said before it hung up comes first: 413, say, and why.
        self._send_error = error
        self._loop.call_soon(self._drain)

    def _send_rest(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._write(self._unsent)

    def _drain(self) -> None:
        # A short read has emptied the socket, but libuv reports an error once: a reset that came
        # with the last bytes would go unseen behind them, so each read asks for one.
        for _ in range(MOST_READS):
            if self.closed or self._ended or self._paused:
                return
            if not self._read_once():
                return
        # For the same reason nobody else may wake us for the rest.
        self._loop.call_soon(self._drain)

    def _read_once(self) -> bool:
        """Read and deliver; return whether there may be more."""
        polled_ns = monotonic_ns()
        try:
            data, ancillary, _, _ = self._socket.recvmsg(READ_SIZE, _ANCILLARY_SIZE)
        except (BlockingIOError, InterruptedError):
            if self._send_error is not None:
                self._end(user_read(self._pump, b"", self._send_error))
            return False
        except OSError as error:
            self._end(user_read(self._pump, b"", error))
            return False
        read = self._stamped(data, kernel_time_ns(ancillary), polled_ns)
        if not data:
            self._end(read._replace(error=self._send_error))
            return False
        self._deliver(read)
        return not self.closed and (len(data) == READ_SIZE or self._failed())

    def _failed(self) -> bool:
        """End with the error that waits behind a short read, if one does; always False."""
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._end(user_read(self._pump, b"", OSError(error, os.strerror(error))))
        return False

    def _stamped(self, data: bytes, kernel_ns: int | None, polled_ns: int) -> Read:
        wall_ns, now_ns, checked_ns = time_ns(), monotonic_ns(), time_ns()
        readings = Readings(polled_ns, now_ns, wall_ns, checked_ns - wall_ns)
        at_ns, clock = self._clock.arrival(kernel_ns, readings)
        lag_ns = max(now_ns - at_ns, self._pump.unpolled_ns(now_ns))
        return Read(data, at_ns, clock, now_ns, lag_ns)

    def _end(self, read: Read) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._deliver(read)

    def is_quiet(self) -> bool:
        """Return whether nothing has come, also since the loop's last poll."""
        if not super().is_quiet():
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    def _pause(self) -> None:
        self._loop.remove_reader(self._socket.fileno())

    def _resume(self) -> None:
        # A new poll reports an error anew, so none is lost meanwhile.
        self._loop.add_reader(self._socket.fileno(), self._drain)

    def close(self) -> None:
        """Close at once."""
        if not self.closed:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
        super().close()


def words(error: OSError) -> str:
    """Return what an error of a connection says, without numbers and addresses."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def kernel_time_ns(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    """Return the receive time (CLOCK_REALTIME, ns) that recvmsg's ancillary data hold, if any."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return None


class ProtocolConnection(_Delivery, asyncio.Protocol):
    """A connection by asyncio's own transport (TLS, or a loop without add_reader): user times."""

    _transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (called by the loop)."""
        # uvloop's has all the methods of asyncio.Transport, and is none by its class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Deliver bytes (called by the loop)."""
        self._deliver(user_read(self._pump, data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Deliver the end (called by the loop)."""
        if not self.closed:
            error = exc if exc is None or isinstance(exc, OSError) else OSError(str(exc))
            self._deliver(user_read(self._pump, b"", error))

    def send(self, data: bytes) -> None:
        """Send all of `data`."""
        if self._transport is not None:
            self._transport.write(data)

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close at once."""
        if not self.closed and self._transport is not None:
            with contextlib.suppress(OSError):
                self._transport.abort()
        super().close()
