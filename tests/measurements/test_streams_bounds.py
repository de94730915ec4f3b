"""What a server can make us hold is bounded, and a request that meets a bound says which."""

import zlib

import pytest
from fakes.streams import HEAD, content, play

from measurements.event_stream import MAX_EVENT_BYTES
from measurements.http1 import HEAD_LIMIT, UNPACKED_LIMIT
from measurements.reply import Status


def packed(size: int) -> bytes:
    packer = zlib.compressobj()
    return packer.compress(bytes(size)) + packer.flush()


ZIPPED = HEAD[:-2] + b"content-encoding: deflate\r\n\r\n"
EXCESSES = {
    "a head that never ends": (b"HTTP/1.1 200 OK\r\nx: ", b"y" * HEAD_LIMIT, "longer than 64 KiB"),
    "an event that never ends": (HEAD, b"data: " + b"x" * MAX_EVENT_BYTES, "longer than 16 MiB"),
    "a few bytes that are many": (ZIPPED, packed(UNPACKED_LIMIT + 1), "to more than 16 MiB"),
    "lists in lists": (HEAD, b'data: {"error": ' + b"[" * 100_000 + b"\n\n", "is no chunk"),
}


@pytest.mark.parametrize("name", EXCESSES)
def test_a_request_that_meets_a_bound_says_so_and_keeps_its_connection_from_others(
    name: str,
) -> None:
    head, more, sentence = EXCESSES[name]
    played = play((100, more), head=head)
    assert played.ending is not None
    assert played.ending.status is Status.STREAM_ERROR
    assert sentence in played.ending.reason
    assert len(played.ending.reason) < 1_000
    assert played.figures.ttft_ns is None
    assert not played.reusable


def test_tokens_before_the_excess_are_kept_apart() -> None:
    played = play((100, content("a")), (110, b"data: " + b"x" * MAX_EVENT_BYTES))
    assert [token.pieces for token in played.tokens] == [(("content", "a"),)]
    assert played.ending is not None
    assert played.ending.status is Status.STREAM_ERROR
