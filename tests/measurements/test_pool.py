"""Endpoints and the connections to them."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from time import monotonic_ns

import pytest
from fakes.waiting import until

from measurements.connection import Read
from measurements.pool import REUSE_WITHIN_NS, EndpointError, Pool, resolve
from measurements.pump import Pump


@asynccontextmanager
async def pool_and_server() -> AsyncIterator[tuple[Pool, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = await resolve(f"http://localhost:{listener.getsockname()[1]}/v1")
        pool = Pool(endpoint, Pump(asyncio.get_running_loop()))
        yield pool, listener
        pool.close()


def test_localhost_is_resolved_once_and_the_address_that_answers_is_asked_first() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, listener):
            port = listener.getsockname()[1]
            v6 = (socket.AF_INET6, ("::1", port, 0, 0))
            pool._addresses = [v6, (socket.AF_INET, ("127.0.0.1", port))]
            first = await pool.open()
            assert pool._addresses[0][0] is socket.AF_INET
            assert first.connect_ns > 0

    asyncio.run(test())


def test_a_connection_is_reused_and_then_cost_nothing_to_open() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, _):
            connection = await pool.open()
            pool.give_back(connection, reusable=True)
            assert pool.take() is connection
            assert connection.connect_ns == 0
            assert pool.take() is None

    asyncio.run(test())


def test_a_connection_that_the_server_closed_is_not_reused() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, listener):
            connection = await pool.open()
            other, _ = listener.accept()
            pool.give_back(connection, reusable=True)
            other.close()
            await until(lambda: connection.closed)
            assert pool.take() is None

    asyncio.run(test())


def test_an_end_that_came_with_the_last_bytes_makes_a_connection_unfit() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, listener):
            connection = await pool.open()
            other, _ = listener.accept()
            got: list[Read] = []

            def received(read: Read) -> None:
                got.append(read)
                pool.give_back(connection, reusable=True)

            connection.receiver = received
            other.sendall(b"answer")
            other.close()
            await until(lambda: bool(got))
            assert pool.take() is None
            assert connection.closed

    asyncio.run(test())


def test_a_close_that_the_loop_has_not_seen_yet_is_seen_before_a_reuse() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, listener):
            connection = await pool.open()
            other, _ = listener.accept()
            pool.give_back(connection, reusable=True)
            other.close()
            assert pool.take() is None

    asyncio.run(test())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems answer from a full queue")
def test_a_server_that_accepts_nobody_is_left_after_the_limit() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            waiting = [socket.socket() for _ in range(3)]
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(listener.getsockname())
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with (
                closing(Pool(await resolve(url), Pump(asyncio.get_running_loop()))) as pool,
                pytest.raises(TimeoutError, match=r"no connection within 0\.1 s"),
            ):
                await pool.open(limit_s=0.1)
            for sock in waiting:
                sock.close()

    asyncio.run(test())


def test_a_connection_idle_for_long_is_not_reused() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, _):
            connection = await pool.open()
            pool.give_back(connection, reusable=True)
            connection.idle_since_ns = monotonic_ns() - REUSE_WITHIN_NS - 1
            assert pool.take() is None
            assert connection.closed

    asyncio.run(test())


def test_a_connection_that_cannot_be_reused_is_closed() -> None:
    async def test() -> None:
        async with pool_and_server() as (pool, _):
            connection = await pool.open()
            pool.give_back(connection, reusable=False)
            assert connection.closed
            assert pool.take() is None

    asyncio.run(test())


def test_a_port_that_nobody_listens_on_refuses() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        endpoint = await resolve(f"http://127.0.0.1:{port}/v1")
        with (
            closing(Pool(endpoint, Pump(asyncio.get_running_loop()))) as pool,
            pytest.raises(ConnectionRefusedError),
        ):
            await pool.open()

    asyncio.run(test())


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://host/v1", "write http://host:port/v1"),
        ("http://", "write http://host:port/v1"),
        ("http://127.0.0.1:99999/v1", "no address of a server"),
        ("http://no-such-host.invalid:8000/v1", "not known"),
    ],
)
def test_an_address_that_is_none_gets_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(EndpointError, match=sentence):
        asyncio.run(resolve(url))


def test_https_has_its_own_port() -> None:
    endpoint = asyncio.run(resolve("https://127.0.0.1/v1"))
    assert (endpoint.port, endpoint.tls) == (443, True)
