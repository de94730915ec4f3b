"""Kernel receive times on the monotonic clock."""

import itertools

from measurements.clock import ArrivalClock, Readings, read_clocks

WALL = 1_700_000_000_000_000_000  # what the wall clock showed at monotonic 0
HOUR = 3_600_000_000_000
MS = 1_000_000


def at(polled_ns: int, now_ns: int, wall: int = WALL) -> Readings:
    return Readings(polled_ns, now_ns, wall + now_ns)


def test_a_kernel_time_between_the_previous_poll_and_now_is_the_arrival() -> None:
    clock = ArrivalClock(at(0, 0))
    assert clock.arrival(WALL + 7 * MS, at(9 * MS, 10 * MS)) == (7 * MS, "kernel")


def test_without_a_kernel_time_the_time_of_reading_stands_for_it() -> None:
    assert ArrivalClock(at(0, 0)).arrival(None, at(9 * MS, 10 * MS)) == (10 * MS, "user")


def test_a_kernel_time_before_the_previous_poll_is_not_believed() -> None:
    clock = ArrivalClock(at(0, 0))
    clock.arrival(WALL + 7 * MS, at(9 * MS, 10 * MS))
    assert clock.arrival(WALL + 8 * MS, at(19 * MS, 20 * MS)) == (20 * MS, "user")


def test_a_kernel_time_in_the_future_is_not_believed() -> None:
    clock = ArrivalClock(at(0, 0))
    assert clock.arrival(WALL + 11 * MS, at(9 * MS, 10 * MS)) == (10 * MS, "user")


def test_a_wall_clock_that_jumps_back_an_hour_changes_no_duration() -> None:
    clock = ArrivalClock(at(0, 0))
    times = []
    for n in range(1, 7):
        wall = WALL if n < 3 else WALL - HOUR
        times.append(clock.arrival(wall + n * 10 * MS, at(n * 10 * MS, n * 10 * MS + 5, wall)))
    assert [clock for _, clock in times] == [
        "kernel",
        "kernel",
        "user",
        "kernel",
        "kernel",
        "kernel",
    ]
    durations = [b - a for (a, _), (b, _) in itertools.pairwise(times)]
    assert all(abs(duration - 10 * MS) <= 5 for duration in durations)


def test_a_wall_clock_that_is_slewed_by_less_than_a_millisecond_is_followed() -> None:
    clock = ArrivalClock(at(0, 0))
    for n in range(1, 5):
        wall = WALL + n * MS // 2
        arrived_ns = n * 10 * MS
        assert clock.arrival(wall + arrived_ns, at(arrived_ns, arrived_ns + 5, wall)) == (
            arrived_ns,
            "kernel",
        )


def test_clocks_are_read_again_where_another_process_came_between() -> None:
    monotonic = iter([9 * MS, 10 * MS, 11 * MS])
    walls = iter(WALL + ns for ns in (0, 9 * MS, 10 * MS, 10 * MS + 100, 11 * MS, 12 * MS))
    readings = read_clocks(monotonic.__next__, walls.__next__)
    assert (readings.now_ns, readings.wall_ns, readings.pair_ns) == (10 * MS, WALL + 10 * MS, 100)


def test_an_interrupted_pair_of_readings_tells_nothing_of_the_offset() -> None:
    clock = ArrivalClock(at(0, 0))
    interrupted = Readings(10 * MS, 10 * MS + 5, WALL + 10 * MS + 5 + MS // 2, pair_ns=MS // 2)
    assert clock.arrival(WALL + 10 * MS, interrupted) == (10 * MS, "kernel")
