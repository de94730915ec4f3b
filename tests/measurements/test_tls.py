"""https: the same load over TLS, with user-space times."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop
from fakes.raw_server import HELLO, Peer, always, serving
from fakes.waiting import until

from measurements.connection import MOST_UNUSED, Read
from measurements.pool import Pool, resolve
from measurements.pump import Pump
from measurements.transport import Transport

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a key with")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a file with a certificate for localhost and its key."""
    key, path = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = ["openssl", "req", "-x509", "-nodes", *curve, *names, "-keyout", key, "-out", path]
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


def as_server(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(8) + b" answered")
    await writer.drain()
    writer.close()


async def asked(certificate: Path) -> list[Read]:
    reads: list[Read] = []
    async with await asyncio.start_server(
        answer, "127.0.0.1", 0, ssl=as_server(certificate)
    ) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = await resolve(f"https://localhost:{port}/v1")
        with contextlib.closing(Pool(endpoint, Pump(asyncio.get_running_loop()))) as pool:
            connection = await pool.open()
            connection.receiver = reads.append
            connection.send(b"question")
            await until(lambda: bool(reads) and not reads[-1].data)
    return reads


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_a_server_behind_tls_is_read_with_user_times(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    reads = runner(asked(certificate))
    assert b"".join(read.data for read in reads) == b"question answered"
    assert {read.clock for read in reads} == {"user"}


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(asked(certificate))


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_httpx2_asks_a_server_behind_tls_and_is_told_that_times_are_our_own(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def test() -> None:
        async with (
            serving(always(HELLO), ssl=as_server(certificate)) as server,
            httpx2.AsyncClient(transport=Transport()) as http,
        ):
            for number in range(2):
                response = await http.get(server.url)
                assert response.content == b"hello"
                assert {read.clock for read in response.extensions["arrivals"]} == {"user"}
                assert (response.extensions["connect_ns"] is None) == (number == 1)
            assert len(server.peers) == 1

    runner(test())


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_a_slow_reader_behind_tls_gets_all_of_a_long_body(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    size = 8 * MOST_UNUSED

    async def answer(peer: Peer) -> None:
        peer.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        peer.writer.write(bytes(size))
        await peer.writer.drain()

    async def test() -> None:
        transport = Transport()
        async with (
            serving(answer, ssl=as_server(certificate)) as server,
            httpx2.AsyncClient(transport=transport) as http,
            http.stream("GET", server.url) as response,
        ):
            (reading,) = transport._answers
            await until(lambda: reading._connection._paused)
            assert reading._held < size
            assert len(await response.aread()) == size

    runner(test())


def test_httpx2_is_told_of_a_certificate_that_nobody_vouches_for(certificate: Path) -> None:
    async def test() -> None:
        async with (
            serving(always(HELLO), ssl=as_server(certificate)) as server,
            httpx2.AsyncClient(transport=Transport()) as http,
        ):
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await http.get(server.url)

    asyncio.run(test())


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_a_server_that_leaves_right_after_the_handshake_keeps_nobody_waiting(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def test() -> None:
        context = as_server(certificate)
        async with (
            await asyncio.start_server(leave, "127.0.0.1", 0, ssl=context) as server,
            httpx2.AsyncClient(transport=Transport()) as http,
        ):
            port = server.sockets[0].getsockname()[1]
            with pytest.raises((httpx2.NetworkError, httpx2.RemoteProtocolError)):
                await http.get(f"https://localhost:{port}", timeout=10)

    runner(test())
