import math

import pytest

from app.charts.axes import (
    TimeWindow,
    ceiling,
    decade_ticks,
    follow,
    short_number,
    time_ticks,
    value_ticks,
)


@pytest.mark.parametrize(
    ("now_s", "span_s", "expected"),
    [
        (0.0, 120.0, (0, 10)),
        (12.0, 120.0, (0, 15)),
        (119.0, 120.0, (0, 120)),
        (120.2, 120.0, (0.5, 120.5)),
        (1000.0, 120.0, (880, 1000)),
        (1000.0, None, (0, 1200)),
        (99_999.0, None, (0, 99_999)),
    ],
)
def test_the_window_follows_the_run(now_s: float, span_s: float | None, expected: object) -> None:
    window = follow(now_s, span_s)
    assert (window.left_s, window.right_s) == expected


def test_the_window_moves_in_steps_of_half_a_second() -> None:
    assert follow(200.1, 120.0) == follow(200.4, 120.0)


@pytest.mark.parametrize("right", [10, 60, 120, 600, 3600, 28_800])
def test_times_have_few_round_ticks_inside_the_window(right: int) -> None:
    ticks = time_ticks(TimeWindow(0.0, right))
    assert 3 <= len(ticks) <= 7
    assert all(0 <= place <= right for place, _ in ticks)


@pytest.mark.parametrize(("largest", "expected"), [(0.93, 1.5), (4.4, 5), (480, 600), (90, 100)])
def test_a_ceiling_is_round_and_leaves_room(largest: float, expected: object) -> None:
    assert ceiling(largest, 1e9) == pytest.approx(expected)


def test_a_ceiling_stays_while_the_values_fit() -> None:
    assert ceiling(50, 100) == 100
    assert ceiling(20, 100) == 30


@pytest.mark.parametrize("largest", [0.0, -1.0, math.nan, math.inf])
def test_a_ceiling_of_nothing_is_the_one_before(largest: float) -> None:
    assert ceiling(largest, 42.0) == 42.0


@pytest.mark.parametrize("top", [1, 1.5, 2, 3, 4, 5, 60, 800, 0.2])
def test_values_have_a_few_ticks_up_to_the_top(top: float) -> None:
    ticks = value_ticks(top)
    assert 3 <= len(ticks) <= 6
    assert ticks[0][0] == 0
    assert ticks[-1][0] <= top * (1 + 1e-9)


@pytest.mark.parametrize(
    ("high_log", "labels"),
    [
        (1.0, ["1", "2", "5", "10"]),
        (2.5, ["1", "3", "10", "30", "100", "300"]),
        (4.0, ["1", "10", "100", "1000", "10k"]),
    ],
)
def test_the_more_decades_the_fewer_ticks_in_each(high_log: float, labels: list[str]) -> None:
    assert [label for _, label in decade_ticks(0.0, high_log)] == labels


@pytest.mark.parametrize(
    ("value", "text"), [(0.2, "0.2"), (2000, "2000"), (40_000, "40k"), (3e6, "3M"), (0, "0")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text
