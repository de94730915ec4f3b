"""https: the same load over TLS, with user-space times."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from fakes.waiting import until

from measurements.connection import Read
from measurements.pool import Pool, resolve
from measurements.pump import Pump

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


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(8) + b" answered")
    await writer.drain()
    writer.close()


async def asked(certificate: Path) -> list[Read]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    reads: list[Read] = []
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        pool = Pool(await resolve(f"https://localhost:{port}/v1"), Pump(asyncio.get_running_loop()))
        connection = await pool.open()
        connection.receiver = reads.append
        connection.send(b"question")
        await until(lambda: bool(reads) and not reads[-1].data)
        pool.close()
    return reads


def test_a_server_behind_tls_is_read_with_user_times(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    reads = asyncio.run(asked(certificate))
    assert b"".join(read.data for read in reads) == b"question answered"
    assert {read.clock for read in reads} == {"user"}


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(asked(certificate))
