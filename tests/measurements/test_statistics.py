import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements.statistics import (
    Confidence,
    confidence,
    figures,
    interval_ranks,
    mean,
    percentile,
)


def test_a_percentile_lies_on_the_line_between_two_order_statistics() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == pytest.approx(2.5)
    assert percentile([0.0, 10.0], 0.9) == pytest.approx(9.0)
    assert percentile(range(101), 0.99) == pytest.approx(99.0)


def test_what_was_not_measured_is_left_out() -> None:
    assert mean([1.0, np.nan, 3.0]) == pytest.approx(2.0)
    assert percentile([np.nan, 7.0], 0.5) == pytest.approx(7.0)
    assert figures([1.0, np.nan]).n == 1


def test_nothing_measured_is_none_and_never_zero() -> None:
    assert mean([]) is None
    assert percentile([np.nan], 0.5) is None
    nothing = figures([])
    assert (nothing.n, nothing.mean, nothing.p50, nothing.p99) == (0, None, None, None)


@pytest.mark.parametrize(
    ("q", "shown_from", "rough_from"), [(0.99, 1000, 100), (0.9, 100, 10), (0.5, 20, 2)]
)
def test_a_percentile_is_shown_rough_or_hidden_by_the_samples_beyond_it(
    q: float, shown_from: int, rough_from: int
) -> None:
    assert confidence(shown_from, q) is Confidence.SHOWN
    assert confidence(shown_from - 1, q) is Confidence.ROUGH
    assert confidence(rough_from, q) is Confidence.ROUGH
    assert confidence(rough_from - 1, q) is Confidence.HIDDEN
    assert confidence(0, q) is Confidence.HIDDEN


def test_figures_hide_a_p99_of_99_samples_and_mark_one_of_100() -> None:
    assert figures(range(99)).p99 is None
    rough = figures(range(100)).p99
    assert rough is not None
    assert rough.confidence is Confidence.ROUGH
    assert rough.value == pytest.approx(98.01)


def test_pooled_figures_say_how_many_requests_they_come_from() -> None:
    assert figures([0.1] * 30, requests=3).requests == 3
    assert figures([0.1] * 30).requests == 30


# For the median each tail is a sum of n over 2^n: 1 - 2·(1 + 10)/2^10 = 97.9 % for ranks 2 and 9 of
# 10; 1 - 2/2^6 = 96.9 % for the extremes of 6; 5 samples reach 93.8 % at most.
@pytest.mark.parametrize(("n", "ranks"), [(10, (2, 9)), (20, (6, 15)), (6, (1, 6)), (5, None)])
def test_the_interval_of_a_median_has_the_ranks_of_the_tables(
    n: int, ranks: tuple[int, int] | None
) -> None:
    assert interval_ranks(n, 0.5) == ranks


def test_a_p99_needs_hundreds_of_samples_for_both_ends_of_its_interval() -> None:
    assert interval_ranks(100, 0.99) is None
    low, high = interval_ranks(1000, 0.99)
    assert low < 990 < high <= 1000


def test_the_exact_and_the_normal_interval_meet_where_one_takes_over() -> None:
    exact, normal = interval_ranks(10_000, 0.9), interval_ranks(10_001, 0.9)
    assert max(abs(a - b) for a, b in zip(exact, normal, strict=True)) <= 3


def test_nineteen_of_twenty_intervals_hold_the_true_median() -> None:
    random = np.random.default_rng(7)
    samples = np.sort(random.exponential(size=(4000, 50)), axis=1)
    low, high = interval_ranks(50, 0.5)
    held = (samples[:, low - 1] <= np.log(2)) & (np.log(2) < samples[:, high - 1])
    assert 0.945 <= held.mean() <= 0.985


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_percentile_lies_within_its_interval_and_its_samples(
    values: list[float], q: float
) -> None:
    value = percentile(values, q)
    assert min(values) <= value <= max(values)
    ranks = interval_ranks(len(values), q)
    if ranks:
        ordered = sorted(values)
        assert ordered[ranks[0] - 1] <= value <= ordered[ranks[1] - 1]
