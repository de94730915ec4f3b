"""HTTP/1.1 answers, whatever the reads were cut into."""

import zlib

import pytest

from measurements.http1 import HttpError, Response

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
