"""Real sockets: what was sent arrives whole, in order, and with the moment of its arrival."""

import asyncio
import contextlib
import socket
import statistics
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from time import monotonic_ns
from typing import Any

import pytest
from fakes.waiting import until

from measurements import connection
from measurements.connection import (
    MOST_READS,
    MOST_UNUSED,
    READ_SIZE,
    ProtocolConnection,
    Read,
    SocketConnection,
)
from measurements.pump import Pump

DEADLINE_S = 10.0
LINGER_0 = b"\1\0\0\0\0\0\0\0"


Runner = Callable[[Coroutine[Any, Any, None]], None]


class Pair:
    """A connection of ours and the other side's plain socket."""

    def __init__(self, ours: SocketConnection, other: socket.socket) -> None:
        self.ours = ours
        self.other = other
        self.reads: list[Read] = []
        ours.receiver = self.reads.append

    @property
    def received(self) -> bytes:
        return b"".join(read.data for read in self.reads)


@asynccontextmanager
async def connected() -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * MOST_UNUSED)
        sock.connect(listener.getsockname())
        sock.setblocking(False)
        other, _ = listener.accept()
    pair = Pair(SocketConnection(sock, Pump(loop), loop), other)
    try:
        yield pair
    finally:
        pair.ours.close()
        other.close()


def run(test: Callable[[Pair], Awaitable[None]], runner: Runner = asyncio.run) -> None:
    async def body() -> None:
        async with connected() as pair:
            await test(pair)

    runner(body())


async def until_stamped(pair: Pair) -> None:
    """Send until the kernel tells times; it begins a little after somebody asked."""
    while not pair.reads or pair.reads[-1].clock != "kernel":
        number = len(pair.reads) + 1
        pair.other.send(b"?")
        await until(lambda number=number: len(pair.reads) == number)
    pair.reads.clear()


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "asyncio":
        return asyncio.run
    found: Runner = pytest.importorskip("uvloop").run
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when bytes arrived")
def test_the_kernels_time_is_that_of_the_send_though_we_read_late() -> None:
    async def test(pair: Pair) -> None:
        errors = []
        await until_stamped(pair)
        for number in range(1, 21):
            sent_ns = monotonic_ns()
            pair.other.send(b"x")
            late_ns = sent_ns + 5_000_000
            while monotonic_ns() < late_ns:  # a loop that is busy elsewhere
                pass
            await until(lambda number=number: len(pair.reads) == number)
            errors.append(pair.reads[-1].at_ns - sent_ns)
        assert {read.clock for read in pair.reads} == {"kernel"}
        assert 0 <= statistics.median(errors) < 2_000_000
        assert all(read.lag_ns >= 2_000_000 for read in pair.reads)

    run(test)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when bytes arrived")
def test_once_somebody_has_asked_the_first_byte_of_a_new_socket_has_a_kernel_time() -> None:
    async def body() -> None:
        async with connected() as pair:
            await until_stamped(pair)
            held = connection.keep_kernel_times()
        for _ in range(20):
            async with connected() as pair:
                pair.other.send(b"x")
                await until(lambda pair=pair: len(pair.reads) == 1)
                assert pair.reads[0].clock == "kernel"
            await asyncio.sleep(0.005)  # time enough for the kernel to leave off
        held.close()

    asyncio.run(body())


def test_what_is_longer_than_a_read_comes_whole_and_in_order() -> None:
    async def test(pair: Pair) -> None:
        sent = bytes(range(256)) * (READ_SIZE // 64)
        pair.other.sendall(sent)
        await until(lambda: len(pair.received) == len(sent))
        assert pair.received == sent
        times = [read.at_ns for read in pair.reads]
        assert times == sorted(times)

    run(test)


def test_a_large_request_is_sent_whole_though_the_socket_takes_it_in_parts() -> None:
    async def test(pair: Pair) -> None:
        pair.other.setblocking(False)
        sent = b"prompt " * 2_000_000
        pair.ours.send(sent)
        received = bytearray()

        def all_there() -> bool:
            try:
                received.extend(pair.other.recv(1 << 22))
            except BlockingIOError:
                return False
            return len(received) == len(sent)

        await until(all_there)
        assert received == sent

    run(test)


def test_the_other_sides_close_is_a_read_without_data() -> None:
    async def test(pair: Pair) -> None:
        pair.other.send(b"last")
        pair.other.close()
        await until(lambda: len(pair.reads) == 2)
        assert [read.data for read in pair.reads] == [b"last", b""]
        assert pair.reads[-1].error is None

    run(test)


def test_a_reset_is_a_read_with_its_error() -> None:
    async def test(pair: Pair) -> None:
        pair.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        pair.other.close()
        await until(lambda: bool(pair.reads))
        assert isinstance(pair.reads[-1].error, ConnectionResetError)

    run(test)


def test_a_reset_right_behind_the_last_bytes_is_seen(runner: Runner) -> None:
    async def test(pair: Pair) -> None:
        pair.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        pair.other.send(b"last")
        pair.other.close()
        await until(lambda: bool(pair.reads) and not pair.reads[-1].data)
        assert isinstance(pair.reads[-1].error, ConnectionResetError)

    run(test, runner)


@pytest.mark.parametrize("size", [READ_SIZE, MOST_UNUSED * 3])
def test_a_reset_behind_more_than_one_turns_bytes_is_seen(size: int, runner: Runner) -> None:
    async def test(pair: Pair) -> None:
        pair.other.setblocking(False)
        pair.ours._pause()  # so that all of it waits in the kernel when the reset comes
        waiting = 0
        with contextlib.suppress(BlockingIOError):
            while waiting < size:
                waiting += pair.other.send(bytes(min(READ_SIZE, size - waiting)))
        pair.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        pair.other.close()
        pair.ours._resume()
        await until(lambda: bool(pair.reads) and not pair.reads[-1].data)
        assert isinstance(pair.reads[-1].error, ConnectionResetError)
        assert 0 < len(pair.received) <= waiting

    run(test, runner)


def test_a_reset_behind_many_small_reads_is_seen(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_SIZE", 1)

    async def test(pair: Pair) -> None:
        pair.other.send(bytes(MOST_READS * 3))
        pair.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        pair.other.close()
        await until(lambda: bool(pair.reads) and not pair.reads[-1].data)
        assert isinstance(pair.reads[-1].error, ConnectionResetError)
        assert len(pair.received) == MOST_READS * 3

    run(test, runner)


def test_a_server_that_floods_is_read_no_faster_than_its_bytes_are_used(runner: Runner) -> None:
    async def test(pair: Pair) -> None:
        pair.other.setblocking(False)
        pair.ours.hold(MOST_UNUSED)  # nobody uses what comes
        pair.other.send(b"first")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pair.received == b""
        pair.ours.hold(-MOST_UNUSED)
        await until(lambda: pair.received == b"first")

    run(test, runner)


def test_an_answer_is_read_though_the_server_hung_up_on_the_request(runner: Runner) -> None:
    async def test(pair: Pair) -> None:
        pair.other.send(b"413: too large")
        pair.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        pair.other.close()
        pair.ours.send(b"a large request")  # fails, before anything was read
        await until(lambda: len(pair.reads) == 2)
        assert pair.reads[0].data == b"413: too large"
        assert isinstance(pair.reads[1].error, ConnectionError)

    run(test, runner)


def test_what_is_sent_in_several_calls_leaves_in_their_order(runner: Runner) -> None:
    async def test(pair: Pair) -> None:
        pair.other.setblocking(False)
        parts = [bytes([number]) * 3_000_000 for number in range(3)]
        for part in parts:
            pair.ours.send(part)
        received = bytearray()

        def all_there() -> bool:
            with contextlib.suppress(BlockingIOError):
                received.extend(pair.other.recv(1 << 22))
            return len(received) == 9_000_000

        await until(all_there)
        assert received == b"".join(parts)

    run(test, runner)


def test_a_connection_is_quiet_until_anything_comes_though_the_loop_did_not_look() -> None:
    async def test(pair: Pair) -> None:
        assert pair.ours.is_quiet()
        pair.other.send(b"x")
        assert not pair.ours.is_quiet()
        pair.ours._drain()
        assert not pair.ours.is_quiet()  # read, and on its way to the receiver
        await until(lambda: bool(pair.reads))
        assert pair.ours.is_quiet()
        pair.other.close()
        assert not pair.ours.is_quiet()

    run(test)


def test_a_send_into_a_lost_connection_is_a_read_with_its_error() -> None:
    async def test(pair: Pair) -> None:
        pair.other.close()
        await until(lambda: len(pair.reads) == 1)
        pair.ours.send(b"a")
        pair.ours.send(b"b")
        await until(lambda: pair.reads[-1].error is not None)
        assert isinstance(pair.reads[-1].error, ConnectionError)

    run(test)


@pytest.mark.parametrize("ending", [b"", b"unasked"])
def test_whatever_comes_while_nobody_receives_makes_it_unfit(ending: bytes) -> None:
    async def test(pair: Pair) -> None:
        pair.ours.receiver = None
        pair.other.send(ending) if ending else pair.other.close()
        await until(lambda: pair.ours.closed)

    run(test)


def test_nothing_is_delivered_after_closing() -> None:
    async def test(pair: Pair) -> None:
        pair.other.send(b"x")
        pair.ours._drain()
        pair.ours.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pair.reads == []

    run(test)


def test_the_other_side_sees_a_close_at_once() -> None:
    async def test(pair: Pair) -> None:
        pair.ours.close()
        pair.other.settimeout(DEADLINE_S)
        assert pair.other.recv(1) == b""

    run(test)


def test_where_the_kernel_gives_no_time_the_time_of_reading_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SO_TIMESTAMPNS", None)  # as on another system

    async def test(pair: Pair) -> None:
        pair.other.send(b"x")
        await until(lambda: bool(pair.reads))
        assert pair.reads[0].clock == "user"
        assert pair.reads[0].at_ns == pair.reads[0].read_ns

    run(test)


def test_a_transport_of_asyncio_serves_the_same_interface_with_user_times() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            _, ours = await loop.create_connection(
                lambda: ProtocolConnection(Pump(loop)), *listener.getsockname()
            )
            other, _ = listener.accept()
        reads: list[Read] = []
        ours.receiver = reads.append
        ours.send(b"question")
        other.settimeout(DEADLINE_S)
        assert other.recv(99) == b"question"
        other.sendall(b"answer")
        other.close()
        await until(lambda: len(reads) == 2)
        ours.close()
        assert [read.data for read in reads] == [b"answer", b""]
        assert {read.clock for read in reads} == {"user"}

    asyncio.run(test())
