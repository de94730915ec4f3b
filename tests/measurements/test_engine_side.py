"""The engine's own figures beside the lab's, in runs written by hand."""

from pathlib import Path
from typing import Any

import pytest
from hand_written_runs import stream, together, write_run

from measurements.run_folder.reader import read
from measurements.summary import Summary, as_json, summarize

TWO_REPLIES = together(
    stream(0, 1.0, [(0.30, 1), (0.31, 1)], queue_s=0.05, prefill_s=0.20, connect_s=0.002),
    stream(1, 2.0, [(0.40, 1), (0.41, 1)], queue_s=0.10, prefill_s=0.24),
)
NAMES = ("at_s", "ttft_sum_s", "ttft_count", "itl_sum_s", "itl_count")


def summary_of(folder: Path, *metrics: tuple[object, ...], **more: Any) -> Summary:
    rows = [dict(zip(NAMES, row, strict=True)) for row in metrics]
    return summarize(read(write_run(folder, **{**TWO_REPLIES, **more}, server_metrics=rows)))


def test_a_mean_is_the_growth_of_the_sum_over_that_of_the_count(tmp_path: Path) -> None:
    summary = summary_of(
        tmp_path,
        (0.5, 7.0, 10, 1.0, 100),
        (1.2, 8.0, 12, 1.5, 110),  # the last before the first counted token, at 1.3 s
        (2.0, 8.3, 13, 1.6, 120),
        (3.0, 8.6, 14, 1.9, 150),
    )
    assert summary.engine_ttft_mean_s == pytest.approx(0.6 / 2)
    assert summary.engine_itl_mean_s == pytest.approx(0.4 / 40)


def test_the_last_digits_of_an_old_engines_totals_count(tmp_path: Path) -> None:
    old = 123_456_789.0
    rows = (1.0, old, 4_000_000_000, 0.0, 0), (3.0, old + 0.625, 4_000_000_002, 0.0, 0)
    summary = summary_of(tmp_path, *rows)
    assert summary.engine_ttft_mean_s == 0.3125
    assert summary.engine_itl_mean_s is None


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(1.5, 1.0, 1, 1.0, 1), (3.0, 2.0, 2, 2.0, 2)],  # none before the first counted token
        [(1.0, 1.0, 1, 1.0, 1)],
        [(1.0, 9.0, 90, 9.0, 900), (3.0, 0.2, 1, 0.1, 8)],  # the engine began anew
        [(1.0, None, None, None, None), (3.0, None, None, None, None)],
    ],
)
def test_what_the_engine_does_not_tell_is_not_made_up(
    tmp_path: Path, rows: list[tuple[object, ...]]
) -> None:
    summary = summary_of(tmp_path, *rows)
    assert (summary.engine_ttft_mean_s, summary.engine_itl_mean_s) == (None, None)


def test_a_ttft_is_split_into_queue_prefill_and_the_rest(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    split = summary.ttft_split
    assert split.n == 2
    assert split.queue_s == pytest.approx(0.075)
    assert split.prefill_s == pytest.approx(0.22)
    assert split.rest_s == pytest.approx(0.055)
    assert split.queue_s + split.prefill_s + split.rest_s == pytest.approx(summary.ttft.mean)
    assert summary.connect_mean_s == pytest.approx(0.002)
    assert as_json(summary)["ttft_split"]["rest_s"] == split.rest_s


def test_only_requests_that_have_every_part_are_split(tmp_path: Path) -> None:
    silent = stream(2, 3.0, [(9.0, 1)])
    summary = summary_of(tmp_path, **together(TWO_REPLIES, silent))
    assert (summary.ttft.n, summary.ttft_split.n) == (3, 2)
    assert summary.ttft_split.rest_s == pytest.approx(0.055)


def test_an_engine_that_tells_nothing_leaves_the_split_empty(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, **together(stream(0, 1.0, [(0.3, 1)])))
    split = summary.ttft_split
    assert (split.n, split.queue_s, split.prefill_s, split.rest_s) == (0, None, None, None)
    assert summary.connect_mean_s is None
