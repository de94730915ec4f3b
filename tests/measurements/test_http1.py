"""HTTP/1.1 answers, whatever the reads were cut into."""

import zlib

import pytest

from measurements.http1 import (
    HEAD_LIMIT,
    UNPACKED_LIMIT,
    HeadTooLongError,
    HttpError,
    RequestError,
    Response,
    UnpackedTooLongError,
    request_head,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


def test_a_chunked_body_is_the_same_wherever_the_reads_are_cut() -> None:
    for cut in range(len(CHUNKED) + 1):
        response = Response()
        body = response.feed(CHUNKED[:cut]) if cut else b""
        body += response.feed(CHUNKED[cut:]) if cut < len(CHUNKED) else b""
        assert body == b"hello world"
        assert response.complete
        assert response.reusable
        assert response.is_event_stream


def test_a_body_of_known_length_is_complete_with_its_last_byte() -> None:
    response = Response()
    assert response.feed(HEAD + b"Content-Length: 4\r\n\r\nab") == b"ab"
    assert not response.complete
    assert response.feed(b"cd") == b"cd"
    assert response.reusable


def test_a_server_that_wants_to_close_is_not_asked_again() -> None:
    response = Response()
    response.feed(HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\na")
    assert response.complete
    assert not response.reusable


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    response = Response()
    assert response.feed(HEAD + b"\r\nabc") == b"abc"
    assert not response.complete
    response.feed_eof()
    assert response.complete
    assert not response.reusable


def test_an_end_within_a_body_of_known_length_does_not_complete_it() -> None:
    response = Response()
    response.feed(HEAD + b"Content-Length: 9\r\n\r\nabc")
    response.feed_eof()
    assert not response.complete


def test_an_interim_answer_is_not_the_answer() -> None:
    response = Response()
    response.feed(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\na")
    assert response.status == 200
    assert response.complete


def test_a_status_other_than_2xx_is_no_success() -> None:
    response = Response()
    response.feed(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    assert (response.status, response.is_success) == (503, False)


@pytest.mark.parametrize("wbits", [zlib.MAX_WBITS, zlib.MAX_WBITS | 16])
def test_a_compressed_body_is_unpacked(wbits: int) -> None:
    packer = zlib.compressobj(wbits=wbits)
    packed = packer.compress(b"hello") + packer.flush()
    name = b"gzip" if wbits > zlib.MAX_WBITS else b"deflate"
    response = Response()
    assert response.feed(HEAD + b"Content-Encoding: " + name + b"\r\n\r\n" + packed) == b"hello"


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", HEAD + b"Content-Encoding: gzip\r\n\r\nnot packed at all"]
)
def test_what_is_not_http_is_said(data: bytes) -> None:
    with pytest.raises(HttpError, match=r"not HTTP/1\.1"):
        Response().feed(data)


def test_bytes_after_the_end_are_an_error() -> None:
    response = Response()
    response.feed(CHUNKED)
    with pytest.raises(HttpError, match="after the end"):
        response.feed(b"more")


ENDLESS = {
    "many headers": (HEAD, b"X: y\r\n" * 1_000),
    "one header": (HEAD + b"X: ", b"y" * 1_000),
    "a reason": (b"HTTP/1.1 200 ", b"OK" * 1_000),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "blank lines": (b"", b"\r\n" * 1_000),
    "trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1_000),
    "one trailer": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"y" * 1_000),
    "a chunk's extension": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;", b"x" * 1_000),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_not_held_beyond_the_limit(name: str) -> None:
    beginning, more = ENDLESS[name]
    response = Response()
    if beginning:
        response.feed(beginning)

    def endless() -> None:
        for _ in range(HEAD_LIMIT // len(more) + 1):
            response.feed(more)

    with pytest.raises(HeadTooLongError, match="longer than 64 KiB"):
        endless()


def test_a_head_that_is_too_long_is_so_though_it_comes_with_its_body() -> None:
    filling = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1_000) for n in range(66))
    with pytest.raises(HeadTooLongError):
        Response().feed(HEAD + filling + b"Content-Length: 5\r\n\r\nhello")


def test_a_long_head_below_the_limit_is_taken() -> None:
    filling = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1_000) for n in range(60))
    assert Response().feed(HEAD + filling + b"Content-Length: 5\r\n\r\nhello") == b"hello"


def test_a_long_body_has_no_limit() -> None:
    response = Response()
    response.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(20_000):  # each with some bytes that are not of the body
        assert response.feed(b"5\r\nhello\r\n") == b"hello"


def test_a_few_bytes_that_unpack_to_gigabytes_are_refused() -> None:
    packer = zlib.compressobj()
    packed = packer.compress(bytes(UNPACKED_LIMIT + 1)) + packer.flush()
    with pytest.raises(UnpackedTooLongError, match="more than 16 MiB"):
        Response().feed(HEAD + b"Content-Encoding: deflate\r\n\r\n" + packed)


def test_a_body_is_left_as_it_came_where_another_unpacks_it() -> None:
    head = HEAD + b"Content-Encoding: gzip\r\n\r\n"
    assert Response(inflate=False).feed(head + b"packed") == b"packed"


@pytest.mark.parametrize("more", [b"garbage", b"HTTP/1.1 408 Too late\r\nX: y\r\n\r\n"])
def test_what_follows_an_answer_in_one_read_is_no_part_of_it_and_spoils_the_connection(
    more: bytes,
) -> None:
    response = Response()
    assert response.feed(CHUNKED + more) == b"hello world"
    assert (response.status, response.complete, response.reusable) == (200, True, False)
    assert len(response.headers) == 2


def test_trailers_are_no_headers() -> None:
    response = Response()
    response.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    response.feed(b"0\r\nContent-Type: text/html\r\n\r\n")
    assert response.complete
    assert response.is_event_stream


def test_an_upgrade_that_nobody_asked_for_is_not_http() -> None:
    with pytest.raises(HttpError, match="not HTTP"):
        Response().feed(b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")


@pytest.mark.parametrize(
    ("told", "reusable"), [(b"timeout=2", False), (b"max=9, Timeout = 5", True), (b"max=9", True)]
)
def test_a_server_that_closes_silent_connections_soon_is_not_asked_again(
    told: bytes, reusable: bool
) -> None:
    response = Response()
    response.feed(HEAD + b"Keep-Alive: " + told + b"\r\nContent-Length: 1\r\n\r\na")
    assert response.reusable is reusable


def test_an_answer_to_head_ends_with_its_head() -> None:
    response = Response(head_only=True)
    assert response.feed(HEAD + b"Content-Length: 5\r\n\r\n") == b""
    assert response.reusable
    response = Response(head_only=True)
    assert response.feed(HEAD + b"Content-Length: 5\r\n\r\nhello") == b""
    assert not response.reusable


@pytest.mark.parametrize("value", [b"key\n", b"key\r\nx: y", b"\0"])
def test_a_header_that_would_break_the_request_is_refused(value: bytes) -> None:
    with pytest.raises(RequestError, match="'Authorization'"):
        request_head("GET", b"/", [(b"Authorization", value)])
