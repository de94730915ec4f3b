"""The decoder by the event-stream standard, whatever the reads were cut into."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements import event_stream
from measurements.event_stream import MAX_EVENT_BYTES, Event, EventDecoder, EventTooLongError


def decode(*reads: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [event for data in reads for event in decoder.feed(data)]


def data_of(*reads: bytes) -> list[bytes]:
    return [event.data for event in decode(*reads)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_of_the_three_line_ends_ends_a_line(end: bytes) -> None:
    assert data_of(b"data: a" + end + end + b"data: b" + end + end) == [b"a", b"b"]


def test_a_crlf_cut_between_its_two_bytes_is_one_line_end() -> None:
    assert data_of(b"data: a\r", b"\n\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a", b"b"]


def test_data_over_several_lines_are_joined_by_line_feeds() -> None:
    assert data_of(b"data: a\ndata:\ndata: b\n\n") == [b"a\n\nb"]


def test_the_space_after_the_colon_may_be_missing_and_only_one_is_taken() -> None:
    assert data_of(b"data:a\n\ndata:  b\n\n") == [b"a", b" b"]


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert data_of(b"data\n\n") == [b""]


def test_comments_id_retry_and_unknown_fields_make_no_event() -> None:
    assert data_of(b":\n\n: ping\n\nid: 7\nretry: 3000\nother: x\n\ndata: a\n\n") == [b"a"]


def test_an_event_has_the_name_that_the_stream_gives_it_and_the_next_one_has_none() -> None:
    assert decode(b"event: error\ndata: a\n\ndata: b\n\n") == [
        Event(b"a", b"error"),
        Event(b"b", b""),
    ]


def test_a_name_without_data_is_forgotten() -> None:
    assert decode(b"event: error\n\ndata: b\n\n") == [Event(b"b", b"")]


def test_a_byte_order_mark_at_the_start_is_no_part_of_a_field() -> None:
    assert data_of(b"\xef\xbb", b"\xbfdata: a\n\n") == [b"a"]


def test_unicode_line_ends_are_text() -> None:
    text = "a\u2028b\u2029c\u0085d\x0b\x0ce".encode()
    assert data_of(b"data: " + text + b"\n\n") == [text]


def test_a_character_cut_between_reads_is_whole() -> None:
    assert data_of(b"data: \xf0\x9f", b"\x99\x82\n\n") == ["🙂".encode()]


def test_an_event_that_the_end_of_the_stream_cuts_off_is_dropped() -> None:
    assert data_of(b"data: a\n\ndata: b\n") == [b"a"]


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 65_536 + b"\n"])
def test_an_event_without_end_is_an_error_and_not_all_of_memory(piece: bytes) -> None:
    pieces = [b"data: ", *(piece,) * (MAX_EVENT_BYTES // 65_536 + 1)]
    with pytest.raises(EventTooLongError, match="16 MiB"):
        decode(*pieces)


def test_many_short_events_are_no_long_one() -> None:
    decoder = EventDecoder()
    events = sum(len(decoder.feed(b"data: " + b"x" * 65_536 + b"\n\n")) for _ in range(300))
    assert events == 300


LINES = st.lists(
    st.sampled_from(
        [
            b"data: a",
            b"data:b",
            b"data",
            b"",
            b"",
            b": c",
            b"event: e",
            b"id: 1",
            "data: ü🙂".encode(),
        ]
    ),
    max_size=12,
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(
    lines=LINES, ends=st.lists(ENDS, min_size=12, max_size=12), cuts=st.sets(st.integers(0, 120))
)
def test_wherever_the_reads_are_cut_the_events_are_the_same(
    lines: list[bytes], ends: list[bytes], cuts: set[int]
) -> None:
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert decode(*pieces) == decode(stream)


@given(lines=LINES, ends=st.lists(ENDS, min_size=12, max_size=12))
def test_byte_by_byte_the_events_are_the_same(lines: list[bytes], ends: list[bytes]) -> None:
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == decode(stream)


@pytest.mark.parametrize("line", [b"data:\n", b"data: x\n", b"data", b": comment"])
def test_an_event_that_never_ends_is_not_held_beyond_the_limit(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 1_000)
    decoder = EventDecoder()

    def endless() -> None:
        for _ in range(1_001):
            assert decoder.feed(line) == []

    with pytest.raises(EventTooLongError):
        endless()


def test_many_events_have_no_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100)
    decoder = EventDecoder()
    for _ in range(100):
        assert len(decoder.feed(b"data: x\n\ndata: y\nid: 1\n\nda")) == 2
        assert decoder.feed(b"ta: z\n\n") == [Event(b"z")]
