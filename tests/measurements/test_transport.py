"""The openai client and httpx2 over the lab's own connections, against real sockets."""

import asyncio
import dataclasses
import gzip
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from fakes.raw_server import HELLO, OK, Answer, Peer, always, serving
from fakes.scheduled_server import ScheduledServer
from fakes.waiting import until

from measurements import connection, transport
from measurements.connection import MOST_UNUSED, READ_SIZE
from measurements.pool import Endpoint, resolve
from measurements.transport import BodyRead, Transport

Runner = Callable[[Coroutine[Any, Any, None]], None]
CHUNKED = OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MESSAGES: Any = [{"role": "user", "content": "Say hello, 🙂."}]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Runner:
    if request.param == "asyncio":
        return asyncio.run
    runner: Runner = pytest.importorskip("uvloop").run
    return runner


def web(**options: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=Transport(), **options)


def client(url: str, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=url, api_key="k", max_retries=0, http_client=web(), **options
    )


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_the_openai_client_gets_a_whole_reply(run: Runner, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with client(url) as api:
            raw = await api.chat.completions.with_raw_response.create(
                model="tiny-lm", messages=MESSAGES, max_tokens=3
            )
            assert raw.parse().choices[0].message.content == "w0 w1 w2"
            extensions = raw.http_response.extensions
            assert extensions["connect_ns"] > 0
            assert extensions["arrivals"][-1].end == len(raw.http_response.content)
            assert extensions["arrivals"][-1].at_ns > extensions["sent_ns"]
            again = await api.models.with_raw_response.list()
            assert again.http_response.extensions["connect_ns"] is None

    with ScheduledServer(tmp_path, ttft_ms=1) as server:
        run(test(server.url))


def test_the_openai_client_streams(run: Runner, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with client(url) as api:
            stream = await api.chat.completions.create(
                model="tiny-lm", messages=MESSAGES, max_tokens=20, stream=True
            )
            chunks = [chunk async for chunk in stream]
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert text.split() == [f"w{number}" for number in range(20)]
        assert stream.response.extensions["arrivals"]

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=1) as server:
        run(test(server.url))


def test_each_token_has_the_arrival_of_its_last_byte(run: Runner, tmp_path: Path) -> None:
    body = bytearray()
    arrivals: list[BodyRead] = []
    ask = {"model": "tiny-lm", "messages": MESSAGES, "max_tokens": 20, "stream": True}

    async def test(url: str) -> None:
        async with web() as http, http.stream("POST", url, json=ask) as response:
            async for piece in response.aiter_raw():
                body.extend(piece)
            arrivals.extend(response.extensions["arrivals"])
        await until(lambda: bool(server.send_log()))

    with ScheduledServer(tmp_path, role_ms=0, ttft_ms=20, gap_ms=5) as server:
        run(test(f"{server.url}/chat/completions"))
        sent_ns = server.send_log()[0]["sent_ns"]
    assert [read.end for read in arrivals] == sorted({read.end for read in arrivals})
    assert arrivals[-1].end == len(body)
    ends = [body.index(b"\n\n", body.index(b'" w%d"' % number)) for number in range(20)]
    read_of = [next(read for read in arrivals if read.end > end) for end in ends]
    errors = [read.at_ns - at_ns for read, at_ns in zip(read_of, sent_ns, strict=True)]
    assert min(errors) > -100_000  # two clocks of one machine
    assert min(errors) < 2_000_000
    assert max(errors) < 5_000_000_000
    if sys.platform == "linux":
        assert "kernel" in {read.clock for read in arrivals}


async def _chat(http_client: httpx2.AsyncClient, url: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=url, api_key="k", max_retries=0, http_client=http_client
    ) as api:
        with pytest.raises(openai.NotFoundError):
            await api.chat.completions.create(model="m", messages=MESSAGES, stream=True)


async def _pieces() -> Any:
    for piece in (b"several ", b"pieces"):
        yield piece


def test_a_request_is_byte_for_byte_what_httpx2_itself_sends(run: Runner) -> None:
    async def test() -> None:
        async with serving(always(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")) as server:
            for http_client in (httpx2.AsyncClient(trust_env=False), web()):
                await _chat(http_client, f"{server.url}/v1")
            theirs, ours = server.requests
            assert ours == theirs

    run(test())


def test_a_body_of_unknown_length_is_sent_in_chunks(run: Runner) -> None:
    async def test() -> None:
        async with serving(always(HELLO)) as server, web() as http:
            await http.post(server.url, content=_pieces())
            assert server.requests[0].endswith(b"\r\n\r\ne\r\nseveral pieces\r\n0\r\n\r\n")

    run(test())


BODY = "data: één 🙂\n\ndata: {}\r\n\r\n".encode()
WHOLE = CHUNKED + framed(BODY[:9]) + framed(BODY[9:]) + b"0\r\n\r\n"


def test_a_body_is_the_same_wherever_the_writes_are_cut(run: Runner) -> None:
    cuts = iter(range(1, len(WHOLE)))

    async def answer(peer: Peer) -> None:
        cut = next(cuts)
        await peer.say(WHOLE[:cut])
        await peer.say(WHOLE[cut:])

    async def test() -> None:
        async with serving(answer) as server, web() as http:
            for _ in range(1, len(WHOLE)):
                response = await http.get(server.url)
                assert response.content == BODY
                assert response.extensions["arrivals"][-1].end == len(BODY)
            assert len(server.peers) == 1

    run(test())


def test_a_body_is_the_same_when_it_comes_byte_by_byte(run: Runner) -> None:
    async def answer(peer: Peer) -> None:
        for number in range(len(WHOLE)):
            await peer.say(WHOLE[number : number + 1])

    async def test() -> None:
        async with serving(answer) as server, web() as http, http.stream("GET", server.url) as got:
            assert b"".join([piece async for piece in got.aiter_raw()]) == BODY
            ends = [read.end for read in got.extensions["arrivals"]]
            assert ends == list(range(1, len(BODY) + 1))

    run(test())


def test_a_packed_body_is_unpacked_once_and_by_the_client(run: Runner) -> None:
    packed = gzip.compress(BODY)
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)

    async def test() -> None:
        async with serving(always(head + packed)) as server, web() as http:
            assert (await http.get(server.url)).content == BODY

    run(test())


def test_an_answer_without_a_body_ends_with_its_head(run: Runner) -> None:
    async def test() -> None:
        async with serving(always(OK + b"Content-Length: 9\r\n\r\n")) as server, web() as http:
            for _ in range(2):
                response = await http.head(server.url)
                assert response.headers["content-length"] == "9"
            assert len(server.peers) == 1

    run(test())


async def silent(peer: Peer) -> None:
    await peer.until_closed()


def then(data: bytes, act: Callable[[Peer], Awaitable[Any]]) -> Answer:
    async def answer(peer: Peer) -> None:
        await peer.say(data)
        await act(peer)

    return answer


async def reset(peer: Peer) -> None:
    peer.reset()


async def close(peer: Peer) -> None:
    peer.writer.close()


PART = CHUNKED + framed(b"part")
BROKEN: list[tuple[Answer, type[Exception], str]] = [
    (silent, httpx2.ReadTimeout, r"nothing came for 0\.1 s"),
    (then(PART, silent), httpx2.ReadTimeout, "nothing came"),
    (then(b"HTTP/1.1", silent), httpx2.ReadTimeout, "nothing came"),
    (reset, httpx2.ReadError, "lost: Connection reset"),
    (then(PART, reset), httpx2.ReadError, "lost: Connection reset"),
    (close, httpx2.RemoteProtocolError, "closed the connection without an answer"),
    (then(b"HTTP/1.1 20", close), httpx2.RemoteProtocolError, "closed the connection in mid"),
    (then(PART, close), httpx2.RemoteProtocolError, "closed the connection in mid"),
    (always(b"SSH-2.0-x\r\n\r\n"), httpx2.RemoteProtocolError, r"not HTTP/1\.1"),
    (then(PART, always(b"nonsense\r\n")), httpx2.RemoteProtocolError, r"not HTTP/1\.1"),
    (always(OK + b"x: y\r\n" * 20_000), httpx2.RemoteProtocolError, "longer than 64 KiB"),
]


@pytest.mark.parametrize(("answer", "error", "sentence"), BROKEN)
def test_whatever_a_server_does_is_one_of_the_librarys_own_exceptions(
    run: Runner, answer: Answer, error: type[Exception], sentence: str
) -> None:
    async def test() -> None:
        async with serving(answer) as server, web(timeout=httpx2.Timeout(9, read=0.1)) as http:
            pieces: list[bytes] = []
            with pytest.raises(error, match=sentence) as raised:
                async with http.stream("GET", server.url) as response:
                    pieces.extend([piece async for piece in response.aiter_raw()])
            assert raised.value.request.url == server.url
            await until(lambda: server.peers[0].closed or server.peers[0].writer.is_closing())

    run(test())


def test_what_came_before_an_error_is_read_before_it(run: Runner) -> None:
    async def test() -> None:
        async with (
            serving(then(PART, reset)) as server,
            web() as http,
            http.stream("GET", server.url) as response,
        ):
            pieces = response.aiter_raw()
            assert await anext(pieces) == b"part"
            with pytest.raises(httpx2.ReadError):
                await anext(pieces)

    run(test())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


UNSENT = [
    ("http://127.0.0.1:{port}", {}, httpx2.ConnectError, "Connection refused"),
    ("http://no-such-host.invalid", {}, httpx2.ConnectError, "not known"),
    ("gopher://127.0.0.1/", {}, httpx2.UnsupportedProtocol, "not http"),
    ("http://127.0.0.1", {"a": "b\r\nc: d"}, httpx2.LocalProtocolError, "'a'"),
]


@pytest.mark.parametrize(("url", "headers", "error", "sentence"), UNSENT)
def test_a_request_that_cannot_be_sent_says_why(
    run: Runner, url: str, headers: dict[str, str], error: type[Exception], sentence: str
) -> None:
    async def test() -> None:
        async with web() as http:
            with pytest.raises(error, match=sentence):
                await http.get(url.format(port=free_port()), headers=headers)

    run(test())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems answer from a full queue")
def test_a_server_that_accepts_nobody_is_a_connect_timeout(run: Runner) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            waiting = [socket.socket() for _ in range(3)]
            for sock in waiting:  # fill its queue
                sock.setblocking(False)
                sock.connect_ex(listener.getsockname())
            async with web(timeout=httpx2.Timeout(9, connect=0.1)) as http:
                with pytest.raises(httpx2.ConnectTimeout, match=r"within 0\.1 s"):
                    await http.get(f"http://127.0.0.1:{listener.getsockname()[1]}")
            for sock in waiting:
                sock.close()

    run(test())


def test_the_openai_client_raises_its_own_exceptions(run: Runner) -> None:
    async def ask(answer: Answer, error: type[Exception]) -> None:
        async with serving(answer) as server, client(server.url, timeout=0.1) as api:
            with pytest.raises(error):
                await api.models.list()
            assert len(server.requests) == 1

    async def test() -> None:
        await ask(silent, openai.APITimeoutError)
        await ask(reset, openai.APIConnectionError)

    run(test())


def test_one_request_is_one_request_though_the_server_asks_for_a_second(run: Runner) -> None:
    refusal = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n"

    async def test() -> None:
        async with serving(always(refusal)) as server, client(server.url) as api:
            with pytest.raises(openai.InternalServerError):
                await api.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert len(server.requests) == 1

    run(test())


async def hang_up_by_cancelling(http: httpx2.AsyncClient, url: str, got: asyncio.Event) -> None:
    async def ask() -> None:
        async with http.stream("GET", url) as response:
            async for _ in response.aiter_raw():
                got.set()

    task = asyncio.get_running_loop().create_task(ask())
    await got.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def hang_up_by_closing(http: httpx2.AsyncClient, url: str, _: asyncio.Event) -> None:
    response = await http.send(http.build_request("GET", url), stream=True)
    await response.aclose()


async def hang_up_by_leaving_the_loop(http: httpx2.AsyncClient, url: str, _: asyncio.Event) -> None:
    async with http.stream("GET", url) as response:
        async for _piece in response.aiter_raw():
            break


@pytest.mark.parametrize(
    "hang_up", [hang_up_by_cancelling, hang_up_by_closing, hang_up_by_leaving_the_loop]
)
def test_whoever_wants_no_more_closes_the_connection_at_once(run: Runner, hang_up: Any) -> None:
    async def test() -> None:
        async with serving(then(PART, silent)) as server, web() as http:
            await hang_up(http, server.url, asyncio.Event())
            await until(lambda: server.peers[0].closed)

    run(test())


def test_a_request_cancelled_before_its_answer_closes_the_connection(run: Runner) -> None:
    async def test() -> None:
        async with serving(silent) as server, web() as http:
            task = asyncio.get_running_loop().create_task(http.get(server.url))
            await until(lambda: bool(server.requests))
            task.cancel()
            await until(lambda: server.peers[0].closed)
            assert task.cancelled()

    run(test())


def test_closing_the_client_ends_what_still_waits(run: Runner) -> None:
    async def test() -> None:
        async with serving(silent) as server:
            ours = Transport()
            http = httpx2.AsyncClient(transport=ours)
            task = asyncio.get_running_loop().create_task(http.get(server.url))
            await until(lambda: bool(server.requests))
            await ours.aclose()
            with pytest.raises(httpx2.ReadError, match="client was closed"):
                await task
            await http.aclose()

    run(test())


FAREWELLS = [
    then(HELLO, close),
    then(HELLO, reset),
    always(OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello"),
    always(OK + b"Keep-Alive: timeout=1, max=100\r\nContent-Length: 5\r\n\r\nhello"),
    always(HELLO + b"HTTP/1.1 408 Too late\r\n\r\n"),
]


@pytest.mark.parametrize("answer", FAREWELLS)
def test_a_connection_that_the_server_may_have_closed_is_not_used_again(
    run: Runner, answer: Answer
) -> None:
    async def test() -> None:
        async with serving(answer) as server, web() as http:
            for _ in range(3):
                response = await http.get(server.url)
                assert (response.status_code, response.content) == (200, b"hello")
                assert response.extensions["connect_ns"] > 0
                await until(lambda: server.peers[-1].gone)
            assert len(server.peers) == 3

    run(test())


def test_an_end_that_comes_in_one_read_with_the_answer_is_not_missed(run: Runner) -> None:
    async def answer(peer: Peer) -> None:
        peer.writer.write(HELLO)
        peer.writer.close()

    async def test() -> None:
        async with serving(answer) as server, web(timeout=5) as http:
            for _ in range(20):
                assert (await http.get(server.url)).content == b"hello"

    run(test())


PROXIES = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "ALL_PROXY": "socks5://127.0.0.1:9",
    "all_proxy": "socks5://127.0.0.1:9",
}


def test_the_environments_proxies_are_not_asked(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PROXIES.items():
        monkeypatch.setenv(name, value)

    async def test() -> None:
        async with serving(always(HELLO)) as server, web() as http:
            assert (await http.get(server.url)).content == b"hello"

    run(test())


@pytest.mark.parametrize("streams", [100, 101, 257])
def test_so_many_streams_are_open_at_once_as_are_asked_for(run: Runner, streams: int) -> None:
    everybody = asyncio.Event()

    async def answer(peer: Peer) -> None:
        await everybody.wait()
        await peer.say(HELLO)

    async def test() -> None:
        async with serving(answer, backlog=512) as server, web(timeout=None) as http:
            asked = [asyncio.ensure_future(http.get(server.url)) for _ in range(streams)]
            await until(lambda: len(server.requests) == streams)
            everybody.set()
            assert {response.content for response in await asyncio.gather(*asked)} == {b"hello"}

    run(test())


def test_a_reader_who_is_slower_than_the_server_holds_no_more_than_the_bound(run: Runner) -> None:
    size = 64 * MOST_UNUSED
    head = OK + b"Content-Length: %d\r\n\r\n" % size

    async def answer(peer: Peer) -> None:
        peer.writer.write(head)
        for _ in range(64):
            peer.writer.write(bytes(MOST_UNUSED))
            await peer.writer.drain()

    async def test() -> None:
        ours = Transport()
        async with (
            serving(answer) as server,
            httpx2.AsyncClient(transport=ours) as http,
            http.stream("GET", server.url) as response,
        ):
            (reading,) = ours._answers
            await until(lambda: reading._connection._paused)
            taken = 0
            async for piece in response.aiter_raw():
                taken += len(piece)
                assert reading._held <= MOST_UNUSED + READ_SIZE
            assert taken == size

    run(test())


def test_a_wall_clock_that_is_set_back_in_mid_stream_changes_no_duration(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns, kernel_ns = connection.time_ns, connection.kernel_time_ns
    hour_ns = 3_600_000_000_000
    said: list[int] = []

    def jump() -> None:
        def jumped(ancillary: list[tuple[int, int, bytes]]) -> int | None:
            at_ns = kernel_ns(ancillary)
            return None if at_ns is None else at_ns - hour_ns

        monkeypatch.setattr(connection, "time_ns", lambda: now_ns() - hour_ns)
        monkeypatch.setattr(connection, "kernel_time_ns", jumped)

    async def answer(peer: Peer) -> None:
        await peer.say(CHUNKED)
        for number in range(30):
            if number == 10:
                jump()
            said.append(connection.monotonic_ns())
            await peer.say(framed(b"token"))
        await peer.say(b"0\r\n\r\n")

    async def test() -> None:
        async with serving(answer) as server, web() as http:
            response = await http.get(server.url)
            arrivals = response.extensions["arrivals"]
            assert len(arrivals) == 30
            for read, at_ns in zip(arrivals, said, strict=True):
                assert -100_000 < read.at_ns - at_ns < 5_000_000_000
            assert arrivals[10].clock == "user"

    run(test())


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_address_that_nobody_answers_is_tried_before_the_send_and_only_once(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def v6_first(url: str) -> Endpoint:
        endpoint = await resolve(url)
        v6 = (socket.AF_INET6, ("::1", endpoint.port, 0, 0))
        return dataclasses.replace(endpoint, addresses=(v6, *endpoint.addresses))

    monkeypatch.setattr(transport, "resolve", v6_first)

    async def test() -> None:
        ours = Transport()
        async with serving(always(HELLO)) as server, httpx2.AsyncClient(transport=ours) as http:
            began_ns = time.monotonic_ns()
            got = (await http.get(server.url)).extensions
            assert 0 < got["connect_ns"] <= got["sent_ns"] - began_ns
            assert got["arrivals"][0].at_ns >= got["sent_ns"]
            (pool,) = ours._pools.values()
            assert pool._addresses[0][0] is socket.AF_INET

    run(test())


def test_a_client_of_another_host_has_a_connection_of_its_own(run: Runner) -> None:
    async def test() -> None:
        async with serving(always(HELLO)) as one, serving(always(HELLO)) as other, web() as http:
            for server in (one, other, one):
                await http.get(server.url)
            assert (len(one.peers), len(other.peers)) == (1, 1)

    run(test())


def test_two_first_requests_at_once_share_what_is_known_of_their_server(run: Runner) -> None:
    async def test() -> None:
        ours = Transport()
        async with (
            serving(always(HELLO)) as server,
            httpx2.AsyncClient(transport=ours) as http,
        ):
            await asyncio.gather(*map(http.get, [server.url] * 4))
            assert len(ours._pools) == 1
            assert len(server.requests) == 4

    run(test())
