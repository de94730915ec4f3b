"""When requests are due: schedules as pure functions of rate, kind and seed."""

from itertools import islice

import numpy as np
import pytest

from measurements.arrivals import AtOnce, Scheduled, arrivals, due_times
from measurements.plan import Load

N = 20_000


def due(count: int = N, **settings: object) -> np.ndarray:
    return np.array(list(islice(due_times(Load(**settings)), count)))


def poisson_gaps(rate: float, seed: int) -> np.ndarray:
    return np.diff(due(rate=rate, arrival="poisson", seed=seed), prepend=0.0)


def test_a_constant_rate_has_equal_gaps_from_the_first_moment_on_and_does_not_drift() -> None:
    assert list(due(4, rate=10.0)) == [0.0, 0.1, 0.2, 0.3]
    assert due(rate=7.0)[-1] == (N - 1) / 7.0


@pytest.mark.parametrize("seed", range(3))
def test_poisson_gaps_have_the_mean_of_the_rate_and_the_spread_of_the_mean(seed: int) -> None:
    gaps = poisson_gaps(50.0, seed)
    error = 3 / np.sqrt(N)  # three standard deviations of a mean, and about two of a spread
    assert gaps.mean() * 50.0 == pytest.approx(1.0, abs=error)
    assert gaps.std() * 50.0 == pytest.approx(1.0, abs=error)


@pytest.mark.parametrize("seed", range(3))
def test_poisson_gaps_are_exponential_by_kolmogorov_and_smirnov(seed: int) -> None:
    gaps = np.sort(poisson_gaps(50.0, seed))
    expected = 1 - np.exp(-50.0 * gaps)
    ranks = np.arange(N + 1) / N
    distance = max((ranks[1:] - expected).max(), (expected - ranks[:-1]).max())
    assert distance < 1.63 / np.sqrt(N)  # 1 % of true exponential samples lie farther away


def test_poisson_gaps_do_not_know_the_gap_before_them() -> None:
    gaps = poisson_gaps(50.0, seed=1)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 3 / np.sqrt(N)


def test_the_seed_decides_a_poisson_schedule() -> None:
    first, again, other = (poisson_gaps(5.0, seed) for seed in (1, 1, 2))
    assert list(first) == list(again)
    assert list(first) != list(other)


def test_a_schedule_without_a_rate_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="needs a rate"):
        due_times(Load())


def test_a_closed_loop_is_due_whenever_it_is_asked_and_never_late() -> None:
    closed = arrivals(Load(), 5)
    assert isinstance(closed, AtOnce)
    assert (closed.due_ns(7), closed.take(8), closed.is_late(9)) == (7, 8, False)


def test_an_open_loop_is_due_when_its_schedule_says_so_however_late_it_is_taken() -> None:
    opened = arrivals(Load(rate=10.0), 1_000)
    assert isinstance(opened, Scheduled)
    assert opened.due_ns(0) == 1_000
    assert [opened.take(10**10) for _ in range(3)] == [1_000, 100_001_000, 200_001_000]
    assert not opened.is_late(300_001_000)
    assert opened.is_late(300_001_001)
