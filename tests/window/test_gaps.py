import numpy as np
from window.runs import batch, steady_stream

from app.charts.gaps import GapTracker


def tokens(*rows: tuple[int, float, float]) -> dict:
    given = [
        {"request_id": owner, "index": 0, "arrival_s": at, "tokens": count}
        for owner, at, count in rows
    ]
    return batch(tokens=given).tokens


def test_a_gap_may_span_two_batches() -> None:
    tracker = GapTracker()
    assert len(tracker.feed(tokens((1, 1.0, 1)))) == 0
    assert tracker.feed(tokens((1, 1.25, 1))).gap_s.tolist() == [0.25]


def test_streams_that_interleave_are_kept_apart() -> None:
    gaps = GapTracker().feed(tokens((1, 1.0, 1), (2, 1.1, 1), (1, 1.5, 1), (2, 1.7, 1)))
    found = dict(zip(gaps.request_id, gaps.gap_s.round(9), strict=True))
    assert found == {1: 0.5, 2: 0.6}


def test_a_gap_is_shared_among_the_tokens_of_its_chunk() -> None:
    gaps = GapTracker().feed(tokens((1, 1.0, 1), (1, 1.4, 4)))
    assert gaps.gap_s.round(9).tolist() == [0.1]
    assert gaps.tokens.tolist() == [4]


def test_a_chunk_without_a_new_token_ends_no_gap() -> None:
    gaps = GapTracker().feed(tokens((1, 1.0, 1), (1, 1.2, 0), (1, 1.5, 1)))
    assert gaps.gap_s.tolist() == [0.5]


def test_unknown_tokens_leave_the_whole_gap_and_say_so() -> None:
    gaps = GapTracker().feed(tokens((1, 1.0, np.nan), (1, 1.5, np.nan)))
    assert gaps.gap_s.tolist() == [0.5]
    assert np.isnan(gaps.tokens).all()


def test_no_tokens_give_no_gaps() -> None:
    assert len(GapTracker().feed(batch().tokens)) == 0


def test_a_forgotten_request_has_no_arrival_before() -> None:
    tracker = GapTracker()
    tracker.feed(tokens((1, 1.0, 1)))
    tracker.forget([1.0])
    assert len(tracker.feed(tokens((1, 2.0, 1)))) == 0


def test_a_time_that_was_not_measured_ends_no_gap() -> None:
    gaps = GapTracker().feed(tokens((1, 1.0, 1), (1, np.nan, 1)))
    assert len(gaps) == 0


def test_a_steady_stream_has_one_gap_less_than_chunks() -> None:
    rows = steady_stream(0, 0.0, tokens=5)["tokens"]
    assert GapTracker().feed(batch(tokens=rows).tokens).gap_s.round(9).tolist() == [0.01] * 4
