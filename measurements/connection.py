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
from typing import Any, NamedTuple, Protocol, cast

from measurements.clock import ArrivalClock, ClockName, Readings, read_clocks
from measurements.pump import Pump

READ_SIZE = 16_384  # small enough to be decoded within one slice
MOST_READS = 64  # of one socket, before the others have their turn
# Bytes of one connection that were read and not yet used. Reading comes first, but a server that
# sends faster than we decode may not fill the memory: beyond this its socket is left to fill up.
MOST_UNUSED = MOST_READS * READ_SIZE
# With these an answer's body is over, as HTTP's chunks or as an event stream: its stream goes on at
# once. All else may wait a little and be decoded together.
_LAST_BYTES = (b"\r\n0\r\n\r\n", b"[DONE]\n\n", b"[DONE]\r\n\r\n")
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
# A read before the kernel's time is mapped to ours: data, ancillary data, what becomes Readings,
# and how long the sockets had not been polled. A plain tuple, since it is made while we read.
_Unstamped = tuple[bytes, list[tuple[int, int, bytes]], tuple[int, int, int, int], int]


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
        """Queue a read for the receiver, which gets it from the pump."""
        self._ended = self._ended or not read.data
        self._queue(self._hand_over, read.data, read)

    def _queue(self, job: Callable[[Receiver, Any], None], data: bytes, what: object) -> None:
        if self.receiver is None:
            self.close()
            return
        self._queued += 1
        self._unused += len(data)
        if self._unused >= MOST_UNUSED:
            self.hold(0)
        hurried = self._paused or not data or data.endswith(_LAST_BYTES)
        (self._pump.post if hurried else self._pump.defer)(job, self.receiver, what)

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
        self._error: OSError | None = None  # waits until what came before it has been read
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask_for_kernel_times(sock)
        self._clock = ArrivalClock(read_clocks())
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
        self._error = error
        self._loop.call_soon(self._drain)

    def _send_rest(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._write(self._unsent)

    def _drain(self) -> None:
        """Empty the socket: nothing is done here that can be done later, among its like."""
        for _ in range(MOST_READS):
            if self.closed or self._ended or self._paused:
                return
            polled_ns = monotonic_ns()
            try:
                data, ancillary, _, _ = self._socket.recvmsg(READ_SIZE, _ANCILLARY_SIZE)
            except OSError as error:
                self._cannot_read(error)
                return
            wall_ns, now_ns, checked_ns = time_ns(), monotonic_ns(), time_ns()
            if not data:
                self._end(user_read(self._pump, b"", self._error))
                return
            times = (polled_ns, now_ns, wall_ns, checked_ns - wall_ns)
            raw = (data, ancillary, times, self._pump.unpolled_ns(now_ns))
            self._queue(self._stamp, data, raw)
            if len(data) < READ_SIZE:
                return
        # libuv reports some events once, so nobody else may wake us for the rest.
        self._loop.call_soon(self._drain)

    def _cannot_read(self, error: OSError) -> None:
        if not isinstance(error, BlockingIOError | InterruptedError):
            self._end(user_read(self._pump, b"", error))
        elif self._error is not None:
            self._end(user_read(self._pump, b"", self._error))

    def _stamp(self, receiver: Receiver, raw: _Unstamped) -> None:
        """Map the kernel's time to ours, and hand the read over."""
        data, ancillary, times, unpolled_ns = raw
        readings = Readings(*times)
        at_ns, clock = self._clock.arrival(kernel_time_ns(ancillary), readings)
        lag_ns = max(readings.now_ns - at_ns, unpolled_ns)
        self._hand_over(receiver, Read(data, at_ns, clock, readings.now_ns, lag_ns))
        self._look_for_error()

    def _look_for_error(self) -> None:
        """Ask for the error that may wait behind what was read.

        libuv reports an error once: a reset that came with the last bytes would go unseen.
        """
        if self.closed or self._ended or self._queued:
            return
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._error = OSError(error, os.strerror(error))
            self._drain()

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


def _ask_for_kernel_times(sock: socket.socket) -> None:
    if SO_TIMESTAMPNS is not None:
        with contextlib.suppress(OSError):  # a kernel without it: user times
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def keep_kernel_times() -> socket.socket:
    """Return an idle socket that asks for kernel times; while it is open the kernel takes them.

    When the first socket of a machine asks, the kernel begins a little later (it patches its code
    in the background): bytes that come before have no time. So somebody asks ahead of the load.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _ask_for_kernel_times(sock)
    return sock


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
