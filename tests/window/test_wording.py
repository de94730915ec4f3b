import math

import pytest

from app.panels.wording import (
    NOTHING,
    count,
    doubts,
    milliseconds,
    percentile_text,
    percentile_tip,
    rate,
)
from measurements.statistics import figures


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00123, "1.23"), (0.0123, "12.3"), (0.123, "123"), (1.234, "1,234"), (None, NOTHING)],
)
def test_durations_have_three_digits(seconds: float | None, text: str) -> None:
    assert milliseconds(seconds) == text


@pytest.mark.parametrize(
    ("per_s", "text"), [(12.34, "12.3"), (6402.4, "6,402"), (None, NOTHING), (math.nan, NOTHING)]
)
def test_rates_are_short(per_s: float | None, text: str) -> None:
    assert rate(per_s) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (9999, "9,999"), (46_000_000, "46,000k")])
def test_counts_fit_a_column(number: int, text: str) -> None:
    assert count(number) == text


def test_a_rough_percentile_is_marked_and_explained() -> None:
    found = figures([0.1] * 50)
    assert percentile_text(found.p90) == "~100"
    assert "rough" in percentile_tip("p90", found.p90, found)


def test_a_percentile_of_too_few_samples_is_a_dash_and_says_so() -> None:
    found = figures([0.1] * 50)
    assert percentile_text(found.p99) == NOTHING
    assert "too few" in percentile_tip("p99", found.p99, found)


def test_a_trusted_percentile_has_its_interval() -> None:
    found = figures([0.1] * 100)
    assert percentile_text(found.p50) == "100"
    assert "95 % interval" in percentile_tip("p50", found.p50, found)


@pytest.mark.parametrize(
    ("share", "lag_s", "sentences"),
    [(None, None, 0), (0.01, 0.005, 0), (0.011, 0.005, 1), (0.01, 0.0051, 1), (0.5, 0.5, 2)],
)
def test_figures_are_doubted_beyond_the_limits_of_the_definitions(
    share: float | None, lag_s: float | None, sentences: int
) -> None:
    assert len(doubts(share, lag_s)) == sentences
