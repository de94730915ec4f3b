import numpy as np
import pytest
from hand_written_runs import load_rows, together
from window.runs import GAP_S, TTFT_S, batch, steady_stream

from app.charts.gaps import GapTracker
from app.charts.picture import BINS, COLUMNS, Picture, bin_edges_ms, bin_of, log_range_ms


def fed(*streams: dict, **tables: list[dict]) -> Picture:
    picture = Picture()
    feed(picture, *streams, **tables)
    return picture


def feed(picture: Picture, *streams: dict, **tables: list[dict]) -> None:
    given = batch(**(together(*streams) if streams else {}), **tables)
    picture.feed(given, GapTracker().feed(given.tokens))


def test_the_bins_cover_a_tenth_of_a_millisecond_to_a_hundred_seconds() -> None:
    edges = bin_edges_ms()
    assert len(edges) == BINS + 1
    assert np.allclose([edges[0], edges[-1]], [0.1, 100_000])


def test_what_lies_outside_the_bins_goes_to_the_outermost() -> None:
    assert bin_of(np.array([0.0, 1e-9, 1e9])).tolist() == [0, 0, BINS - 1]


def test_an_itl_lands_between_the_edges_of_its_bin() -> None:
    edges = bin_edges_ms()
    place = bin_of(np.array([0.0123]))[0]
    assert edges[place] <= 12.3 < edges[place + 1]


def test_gaps_are_counted_in_the_column_of_their_arrival() -> None:
    picture = fed(steady_stream(0, 2.0, tokens=5))
    assert picture.histogram.sum() == 4
    assert picture.heat[4].sum() == 4
    assert picture.heat.sum() == 4
    place = bin_of(np.array([GAP_S * 1.001]))[0]  # 10 ms is an edge
    assert picture.histogram[place - 1 : place + 1].sum() == 4


def test_a_chunk_of_several_tokens_counts_each_of_them() -> None:
    picture = Picture()
    rows = steady_stream(0, 0.0, tokens=2)
    rows["tokens"][1]["tokens"] = 4
    feed(picture, rows)
    assert picture.histogram.sum() == 4
    assert picture.tokens.sum() == 5


def test_warm_up_is_in_the_throughput_and_in_no_latency() -> None:
    picture = fed(steady_stream(0, 0.0, warmup=1), steady_stream(1, 1.0))
    assert picture.tokens.sum() == 10
    assert picture.histogram.sum() == 4
    assert len(picture.ttfts.dots()[0]) == 1


def test_a_dot_stands_at_the_send_time() -> None:
    sent_s, ttft_s = fed(steady_stream(0, 1.5)).ttfts.dots()
    assert np.allclose([sent_s[0], ttft_s[0]], [1.5, TTFT_S])


def test_a_request_that_fails_takes_its_dot_away() -> None:
    picture = fed(steady_stream(0, 0.0, status="reset"), steady_stream(1, 1.0))
    assert picture.ttfts.dots()[0].round(9).tolist() == [1.0]


def test_the_target_is_a_step_line_that_holds_until_the_next_row() -> None:
    picture = fed(steady_stream(0, 3.0), load=load_rows((0.0, "measuring", 1, 1)))
    feed(picture, steady_stream(1, 4.0), load=load_rows((2.6, "measuring", 8, 1)))
    edges, streams = picture.target_steps()
    assert len(edges) == len(streams) + 1
    assert streams.tolist() == [1.0] * 5 + [8.0] * 4


def test_tokens_per_second_speak_of_complete_columns() -> None:
    picture = fed(steady_stream(0, 0.0, tokens=21), steady_stream(1, 0.6, tokens=1))
    seconds, per_s = picture.tokens_per_s()
    assert seconds.tolist() == [0.25]
    assert per_s.tolist() == [42.0]


def test_a_run_shorter_than_a_column_has_its_rate_all_the_same() -> None:
    seconds, per_s = fed(steady_stream(0, 0.0, tokens=26)).tokens_per_s()
    assert seconds.tolist() == pytest.approx([0.15])
    assert per_s.tolist() == pytest.approx([26 / 0.3])


def test_a_long_run_folds_its_columns_and_loses_nothing() -> None:
    picture = fed(steady_stream(0, 0.0), load=load_rows((0.0, "measuring", 3, 1)))
    shape = picture.heat.shape
    feed(picture, steady_stream(1, COLUMNS * 0.5 * 3))
    assert picture.heat.shape == shape
    assert picture.column_s == 2.0
    assert picture.heat.sum() == 8
    assert picture.tokens.sum() == 10
    assert picture.heat[0].sum() == 4
    assert picture.target_steps()[1][-1] == 3


def test_nothing_fed_shows_nothing() -> None:
    picture = fed()
    assert picture.columns_until_now() == 0
    assert np.isnan(picture.recent_tokens_per_s())
    assert len(picture.ttfts.dots()[0]) == 0


def test_times_that_were_not_measured_are_left_out() -> None:
    rows = steady_stream(0, 0.0, tokens=3)
    rows["tokens"][1]["arrival_s"] = np.nan
    picture = fed(rows)
    assert picture.tokens.sum() == 2


def test_an_empty_batch_changes_nothing() -> None:
    picture = Picture()
    given = batch()
    assert picture.feed(given, GapTracker().feed(given.tokens)) is False


def test_gaps_of_chunks_that_shared_a_read_do_not_stretch_the_range() -> None:
    histogram = np.zeros(BINS, np.int64)
    histogram[bin_of(np.array([0.01, 0.02]))] = 5
    expected = log_range_ms(histogram)
    histogram[0] = 1000
    assert log_range_ms(histogram) == expected


def test_a_range_holds_a_decade_at_least() -> None:
    histogram = np.zeros(BINS, np.int64)
    histogram[bin_of(np.array([0.01]))] = 1
    low, high = log_range_ms(histogram)
    assert high - low >= 1
    assert low < 1 < high
