import numpy as np

from app.charts.ttft_ring import RUNNING_REQUESTS, TtftRing, running_percentile


def test_the_oldest_requests_give_way() -> None:
    ring = TtftRing(size=4)
    ring.add(np.arange(6.0), np.arange(6.0), np.arange(6.0) / 10)
    ring.add(np.array([6.0]), np.array([6.0]), np.array([0.6]))
    assert ring.dots()[0].tolist() == [3, 4, 5, 6]


def test_dots_come_in_order_of_sending() -> None:
    ring = TtftRing()
    ring.add(np.arange(3.0), np.array([3.0, 1.0, 2.0]), np.array([0.3, 0.1, 0.2]))
    assert ring.dots()[1].tolist() == [0.1, 0.2, 0.3]


def test_a_dropped_request_is_gone() -> None:
    ring = TtftRing()
    ring.add(np.arange(3.0), np.arange(3.0), np.ones(3))
    ring.drop(np.array([1.0]))
    assert ring.dots()[0].tolist() == [0, 2]


def test_a_running_percentile_is_numpys_over_the_last_requests() -> None:
    values = np.random.default_rng(1).gamma(2.0, 0.1, 500)
    times, lines = running_percentile(np.arange(500.0), values, 0.9)
    for at, value in zip(times[::17], lines[::17], strict=True):
        window = values[max(0, int(at) + 1 - RUNNING_REQUESTS) : int(at) + 1]
        assert np.isclose(value, np.quantile(window, 0.9))


def test_a_percentile_begins_where_there_are_enough_requests() -> None:
    times = np.arange(30.0)
    assert running_percentile(times, times, 0.5)[0][0] == 1
    assert running_percentile(times, times, 0.9)[0][0] == 9
    assert len(running_percentile(times, times, 0.99)[0]) == 0


def test_a_running_percentile_begins_anew_where_the_load_changes() -> None:
    values = np.append(np.ones(50), np.full(50, 9.0))
    times, lines = running_percentile(np.arange(100.0), values, 0.5, [49.5])
    assert set(lines[times < 50]) == {1.0}
    assert set(lines[times > 50]) == {9.0}
    assert 50 not in times


def test_no_request_has_no_line() -> None:
    assert len(running_percentile(np.empty(0), np.empty(0), 0.5)[0]) == 0
