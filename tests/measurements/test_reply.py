"""One request's life, as far as streams do not show it."""

from measurements.chunks import Chunk, Usage
from measurements.clock import ClockName
from measurements.connection import Read
from measurements.reply import Ending, Reply, Status

A = Chunk(pieces=(("content", "a"),))


def read(at_ns: int, clock: ClockName, lag_ns: int = 0) -> Read:
    return Read(b"a", at_ns, clock, at_ns + lag_ns, lag_ns)


def test_the_largest_lag_and_the_weaker_clock_are_kept() -> None:
    reply = Reply(0)
    reply.take([A], read(10, "kernel", 3))
    reply.take([A], read(20, "user", 9))
    reply.take([A], read(30, "kernel", 1))
    figures = reply.figures(Ending(Status.OK))
    assert (figures.client_lag_ns, figures.clock) == (9, "user")


def test_nothing_read_means_no_lag_and_no_clock() -> None:
    figures = Reply(0).figures(Ending(Status.RESET, "lost"))
    assert (figures.client_lag_ns, figures.clock) == (None, "")


def test_a_count_that_pauses_leaves_the_tokens_of_two_chunks_unknown() -> None:
    reply = Reply(0)
    chunks = [
        Chunk(pieces=A.pieces, usage=Usage(None, 1, None)),
        A,
        Chunk(pieces=A.pieces, usage=Usage(None, 3, None)),
        Chunk(pieces=A.pieces, usage=Usage(None, 4, None)),
    ]
    tokens = reply.take(chunks, read(10, "kernel"))
    assert [token.tokens for token in tokens] == [1, None, None, 1]


def test_a_count_that_falls_is_no_count() -> None:
    reply = Reply(0)
    tokens = [
        reply.take([Chunk(pieces=A.pieces, usage=Usage(None, n, None))], read(n, "kernel"))[0]
        for n in (5, 2)
    ]
    assert [token.tokens for token in tokens] == [5, None]


def test_text_of_two_kinds_in_one_chunk_is_one_arrival() -> None:
    reply = Reply(0)
    both = Chunk(pieces=(("reasoning", "r"), ("content", "c")))
    (token,) = reply.take([both], read(10, "kernel"))
    assert (token.kind, token.pieces) == ("content", both.pieces)


def test_a_cancelled_reply_has_no_latency_and_keeps_its_usage() -> None:
    reply = Reply(0)
    reply.take([Chunk(pieces=A.pieces, usage=Usage(8, 1, 4))], read(10, "kernel"))
    ending = reply.ending(Ending(Status.CANCELLED, "stopped by hand"))
    figures = reply.figures(ending)
    assert ending == (Status.CANCELLED, "stopped by hand")
    assert figures.ttft_ns is figures.e2e_ns is figures.tpot_ns is None
    assert (figures.prompt_tokens, figures.cached_tokens, figures.output_tokens) == (8, 4, 1)


def test_the_engines_own_share_is_kept() -> None:
    reply = Reply(0)
    reply.take([A, Chunk(queue_ns=5, prefill_ns=7, finish_reason="stop")], read(10, "kernel"))
    figures = reply.figures(reply.ending(Ending(Status.OK)))
    assert (figures.queue_ns, figures.prefill_ns) == (5, 7)


def test_more_tokens_than_chunks_without_counts_are_spread_by_the_final_usage() -> None:
    reply = Reply(0)
    reply.take([A], read(100, "kernel"))
    reply.take([A], read(200, "kernel"))
    reply.take([Chunk(finish_reason="length", usage=Usage(8, 11, None))], read(201, "kernel"))
    assert reply.figures(Ending(Status.OK)).tpot_ns == 10
