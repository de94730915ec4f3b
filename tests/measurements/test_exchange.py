"""Streams as servers write them, and their right readings: whole exchanges, byte by byte."""

import errno
import gzip

import pytest
from fakes.streams import (
    DONE,
    FIN,
    HEAD,
    MS,
    ROLE,
    SENT_NS,
    Played,
    chunk,
    content,
    event,
    play,
    usage,
)

from measurements.exchange import LAST_WORDS_NS, Limits
from measurements.reply import Status

NULL_ROLE = chunk({"role": "assistant", "content": None})
RESET = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


@pytest.mark.parametrize("role", [ROLE, NULL_ROLE])
def test_a_role_is_no_token(role: bytes) -> None:
    played = play(
        (50, role), (250, content("Hi")), (300, content(" there")), (301, FIN + usage(2) + DONE)
    )
    assert played.ending == (Status.OK, "")
    assert played.figures.ttft_ns == 250 * MS
    assert played.gaps_ms == [50]
    assert played.figures.output_tokens == 2
    assert played.figures.tpot_ns == 50 * MS
    assert played.figures.e2e_ns == 300 * MS


def test_a_prefill_in_pieces_is_in_the_ttft_and_in_no_gap() -> None:
    times = range(2200, 2400, 20)
    played = play((900, ROLE), *((t, content("x")) for t in times), (2401, FIN + DONE))
    assert played.figures.ttft_ns == 2200 * MS
    assert max(played.gaps_ms) == 20


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thinking_is_generated_text_and_the_answer_has_a_time_of_its_own(name: str) -> None:
    played = play(
        (100, chunk({name: "a"})),
        (150, chunk({name: "b"})),
        (900, content("C")),
        (901, FIN + usage(3) + DONE),
    )
    assert played.figures.ttft_ns == 100 * MS
    assert played.figures.ttft_answer_ns == 900 * MS
    assert played.figures.tpot_ns == 400 * MS
    assert [token.kind for token in played.tokens] == ["reasoning", "reasoning", "content"]


def test_a_reply_that_only_thinks_has_no_time_to_answer() -> None:
    played = play((100, chunk({"reasoning": "a"})), (150, chunk({}, "length") + DONE))
    assert played.figures.ttft_ns == 100 * MS
    assert played.figures.ttft_answer_ns is None


@pytest.mark.parametrize(
    "last",
    [
        usage(1),
        event({"usage": {"prompt_tokens": 5, "completion_tokens": 1}}),
        event({"choices": [{"delta": None}], "usage": {"completion_tokens": 1}}),
        event({"choices": None, "usage": {"completion_tokens": 1}}),
    ],
)
def test_a_late_usage_is_kept_and_is_no_token(last: bytes) -> None:
    played = play((100, content("A")), (150, FIN), (400, last), (401, DONE))
    assert played.ending == (Status.OK, "")
    assert played.figures.e2e_ns == 100 * MS
    assert played.figures.output_tokens == 1


def counted(text: str, tokens: int) -> bytes:
    return content(text, usage={"completion_tokens": tokens})


def test_several_tokens_in_a_chunk_are_counted_where_the_server_counts_along() -> None:
    played = play(
        (100, counted("a", 1)),
        (150, counted("bcde", 5)),
        (200, counted("fghi", 9)),
        (201, FIN + DONE),
    )
    assert [token.tokens for token in played.tokens] == [1, 4, 4]
    assert played.gaps_ms == [50, 50]
    assert played.figures.tpot_ns == 12.5 * MS
    assert played.figures.output_tokens == 9


def test_without_usage_only_chunk_gaps_are_claimed() -> None:
    played = play(
        (100, content("a")), (150, content("bcde")), (200, content("fghi")), (201, FIN + DONE)
    )
    assert [token.tokens for token in played.tokens] == [None, None, None]
    assert played.gaps_ms == [50, 50]
    assert played.figures.tpot_ns is None
    assert played.figures.output_tokens is None


def test_a_tool_call_begins_with_its_name() -> None:
    named = chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]})
    more = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})
    end = chunk({}, "tool_calls") + usage(6) + DONE
    played = play((50, NULL_ROLE), (120, named), (200, more), (201, end))
    assert played.ending == (Status.OK, "")
    assert played.figures.ttft_ns == 120 * MS
    assert played.figures.finish_reason == "tool_calls"
    assert [token.kind for token in played.tokens] == ["tool", "tool"]


def test_an_event_in_pieces_arrives_with_its_last_byte_and_what_shares_a_read_is_a_burst() -> None:
    played = play(
        (100, b'data: {"choices":[{"delta":{"con'),
        (110, b'tent":"A"}}]}\n'),
        (120, b"\n"),
        (200, content("B") + content("C") + DONE),
    )
    assert played.text == "ABC"
    assert [token.burst for token in played.tokens] == [1, 2, 2]
    assert played.gaps_ms == [80, 0]


def test_a_character_cut_between_reads_is_whole() -> None:
    whole = content("🙂")
    cut = whole.index("🙂".encode()) + 2
    played = play((100, whole[:cut]), (110, whole[cut:]), (120, FIN + DONE))
    assert played.text == "🙂"


def test_unicode_line_ends_are_text() -> None:
    text = "a\u2028b\u2029c\u0085d"
    played = play((100, content(text)), (110, FIN + DONE))
    assert played.text == text
    assert len(played.tokens) == 1


def test_pings_are_no_tokens() -> None:
    played = play(
        (10, b":\n\n"),
        (20, b": ping\n\n"),
        (300, content("A") + b": ping\n\n"),
        (350, content("B")),
        (351, FIN + DONE),
    )
    assert played.figures.ttft_ns == 300 * MS
    assert played.text == "AB"


def test_a_retry_field_does_not_end_the_stream() -> None:
    played = play((100, content("A")), (150, b"retry: 3000\n\n" + content("B")), (160, FIN + DONE))
    assert played.ending == (Status.OK, "")
    assert played.text == "AB"


def test_a_finish_reason_is_an_end_without_done() -> None:
    assert play((100, content("A")), (110, FIN)).ending == (Status.OK, "")
    assert play((100, content("A")), (110, chunk({"content": "B"}, "stop"))).ending == (
        Status.OK,
        "",
    )


def test_done_alone_is_an_end() -> None:
    assert play((100, content("A")), (110, DONE)).ending == (Status.OK, "")


@pytest.mark.parametrize("last", [content("B"), FIN[:-1], FIN[:-5]])
def test_a_stream_that_closes_before_its_end_is_truncated(last: bytes) -> None:
    played = play((100, content("A")), (110, last))
    assert played.ending is not None
    assert played.ending.status is Status.TRUNCATED
    assert "finish_reason" in played.ending.reason
    assert played.figures.ttft_ns is played.figures.e2e_ns is played.figures.tpot_ns is None


def test_a_reset_is_a_lost_connection_and_no_latency() -> None:
    played = play((100, content("A")), error=RESET)
    assert played.ending == (Status.RESET, "the connection was lost: Connection reset by peer")
    assert played.figures.ttft_ns is None
    assert len(played.tokens) == 1


def test_a_reset_after_the_end_takes_nothing_away() -> None:
    assert play((100, content("A") + FIN), error=RESET).ending == (Status.OK, "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"error": {"message": "engine failed", "code": 500}}, "engine failed"),
        ({"error": "overloaded"}, "overloaded"),
        ({"object": "error", "message": "engine failed"}, "engine failed"),
    ],
)
def test_an_error_inside_the_stream_fails_the_request(error: dict[str, str], message: str) -> None:
    played = play((100, content("A")), (150, content("B")), (160, event(error) + DONE))
    assert played.ending == (Status.STREAM_ERROR, message)
    assert len(played.tokens) == 2
    assert played.figures.ttft_ns is None


def test_an_event_of_the_type_error_is_an_error_in_any_form() -> None:
    played = play((100, content("A")), (150, b"event: error\ndata: out of memory\n\n"))
    assert played.ending == (Status.STREAM_ERROR, "out of memory")


def test_an_event_that_is_no_chunk_fails_the_request_and_keeps_what_came_with_it() -> None:
    played = play((100, content("A") + b"data: <oops>\n\n" + FIN + DONE))
    assert played.ending is not None
    assert played.ending.status is Status.STREAM_ERROR
    assert "<oops>" in played.ending.reason
    assert played.text == "A"


def head(content_type: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>hello</html>"),
        ("application/json", b'{"choices": [{"message": {"content": "A"}}]}'),
        ("text/event-stream", b""),
        ("application/json", b""),
    ],
)
def test_an_answer_that_is_no_event_stream_is_a_failure(content_type: str, body: bytes) -> None:
    played = play((5, body) if body else (5, b""), head=head(content_type))
    assert played.ending is not None
    assert played.ending.status is Status.NOT_EVENT_STREAM
    assert "not an event stream" in played.ending.reason
    assert content_type in played.ending.reason


def test_replies_of_one_and_of_no_token_end_well_and_have_no_tpot() -> None:
    one = play((100, content("A")), (101, FIN + usage(1) + DONE))
    none = play((100, FIN + usage(0) + DONE))
    assert one.ending == none.ending == (Status.OK, "")
    assert one.figures.tpot_ns is none.figures.tpot_ns is None
    assert one.figures.ttft_ns == 100 * MS
    assert none.figures.ttft_ns is none.figures.e2e_ns is None
    assert none.figures.output_tokens == 0


def test_a_natural_stops_silent_token_is_no_interval() -> None:
    tokens = [(100 + 50 * n, content("x")) for n in range(5)]
    played = play(*tokens, (350, FIN + usage(6) + DONE))
    assert played.figures.tpot_ns == 50 * MS
    assert played.figures.output_tokens == 6


def test_a_token_without_text_of_its_own_belongs_to_the_chunk_that_shows_it() -> None:
    played = play(
        (100, counted("a", 1)),
        (150, counted("", 2)),
        (200, counted("🙂", 3)),
        (250, chunk({}, "stop", usage={"completion_tokens": 4}) + DONE),
    )
    assert [token.tokens for token in played.tokens] == [1, 2]
    assert played.figures.tpot_ns == 50 * MS


def test_http_errors_say_status_and_message() -> None:
    body = b'{"error": {"message": "still loading"}}'
    played = play((5, body), head=head("application/json", "503 Service Unavailable"))
    assert played.ending == (Status.HTTP_ERROR, "HTTP 503: still loading")
    assert played.http_status == 503
    assert play(head=head("text/plain", "302 Found")).ending == (Status.HTTP_ERROR, "HTTP 302")


def test_an_error_body_is_kept_to_a_limit() -> None:
    played = play(*((n, b"x" * 60_000) for n in range(5)), head=head("text/plain", "500 Error"))
    assert played.ending is not None
    assert len(played.ending.reason) < 300


def test_what_is_not_http_is_said() -> None:
    played = play((5, b"SSH-2.0-OpenSSH_9.2\r\n"), head=b"")
    assert played.ending is not None
    assert played.ending.status is Status.STREAM_ERROR
    assert "not HTTP/1.1" in played.ending.reason


def test_a_close_without_an_answer_is_a_reset() -> None:
    assert play(head=b"").ending == (
        Status.RESET,
        "the server closed the connection without an answer",
    )


SHORT = Limits(total_ns=1_000 * MS, idle_ns=200 * MS)


def test_silence_within_a_stream_is_a_stall_from_the_idle_limit_on() -> None:
    assert play((100, ROLE), closes=False, checked_ms=299, limits=SHORT).ending is None
    stalled = play((100, ROLE), closes=False, checked_ms=301, limits=SHORT)
    assert stalled.ending == (Status.STALLED, "nothing came for 0.2 s")


def test_waiting_for_a_long_prefill_is_no_stall() -> None:
    assert play(closes=False, checked_ms=900, limits=SHORT).ending is None


def test_a_request_over_its_total_limit_is_a_timeout() -> None:
    late = play((999, ROLE), closes=False, checked_ms=1001, limits=SHORT)
    assert late.ending == (Status.TIMEOUT, "not complete within 1 s")


def test_after_its_end_a_reply_waits_for_usage_but_not_for_ever() -> None:
    limit_ms = LAST_WORDS_NS / MS
    whole = (100, content("A") + FIN)
    assert play(whole, closes=False, checked_ms=limit_ms).ending is None
    assert play(whole, closes=False, checked_ms=limit_ms + 101).ending == (Status.OK, "")


def test_after_done_only_the_end_of_the_body_is_waited_for() -> None:
    played = play((100, content("A") + DONE), closes=False, checked_ms=400)
    assert played.ending == (Status.OK, "")
    assert not played.reusable


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def test_a_kept_alive_answer_ends_with_its_body() -> None:
    body = chunked(content("A") + FIN) + chunked(DONE) + b"0\r\n\r\n"
    played = play((100, body), head=CHUNKED, closes=False)
    assert played.ending == (Status.OK, "")
    assert played.reusable


def test_a_body_cut_off_between_its_chunks_is_truncated() -> None:
    played = play((100, chunked(content("A"))), head=CHUNKED)
    assert played.ending is not None
    assert played.ending.status is Status.TRUNCATED


def test_a_compressed_stream_is_read() -> None:
    packed = gzip.compress(content("A") + FIN + DONE)
    zipped = HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
    played = play((100, packed[:20]), (110, packed[20:]), head=zipped)
    assert played.ending == (Status.OK, "")
    assert played.text == "A"


def test_the_completions_api_is_read_alike() -> None:
    text = event({"id": "cmpl-1", "choices": [{"text": "A", "finish_reason": None}]})
    last = event({"id": "cmpl-1", "choices": [{"text": "B", "finish_reason": "length"}]})
    played = play((100, text), (150, last + usage(2) + DONE))
    assert played.text == "AB"
    assert played.figures.response_id == "cmpl-1"
    assert played.figures.tpot_ns == 50 * MS


def noticed(played: Played) -> list[tuple[float, str]]:
    return [((notice.at_ns - SENT_NS) / MS, notice.what) for notice in played.notices]


def test_chunks_without_text_and_the_end_are_noticed() -> None:
    played = play(
        (50, ROLE),
        (100, content("A")),
        (110, chunk({"content": ""})),
        (120, content("B") + FIN),
        (130, usage(3)),
        (140, DONE),
    )
    assert noticed(played) == [
        (50, "role"),
        (110, "empty"),
        (120, "finish"),
        (130, "usage"),
        (140, "done"),
    ]


def test_what_has_text_is_a_token_alone() -> None:
    said = chunk({"role": "assistant", "content": "A"}, "length", usage={"completion_tokens": 1})
    assert noticed(play((100, said), (101, DONE))) == [(101, "done")]


def test_an_error_and_a_chunk_of_nothing_are_not_noticed() -> None:
    nothing = event({"choices": []}) + event({"error": "overloaded"})
    assert noticed(play((100, nothing), (101, DONE))) == [(101, "done")]


def test_a_whole_body_without_done_has_an_end() -> None:
    text = content("A") + FIN
    closed = play((100, text))
    framed = play((100, chunked(text) + b"0\r\n\r\n"), head=CHUNKED)
    assert noticed(closed) == [(100, "finish"), (101, "end")]
    assert noticed(framed) == [(100, "finish"), (100, "end")]


def test_a_body_that_was_cut_off_has_no_end() -> None:
    assert noticed(play((100, chunked(content("A"))), head=CHUNKED)) == []
    assert noticed(play((100, content("A")), error=RESET)) == []
