"""One monotonic clock for every duration; kernel receive times are mapped to it."""

from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Literal, NamedTuple

ClockName = Literal["kernel", "user"]

# Both clocks are slewed alike, so their offset moves only when somebody sets the wall clock.
MAX_OFFSET_STEP_NS = 1_000_000
# A pair of readings that took longer was interrupted, and tells nothing of the offset.
MAX_PAIR_NS = 20_000
_TRIES = 3


class Readings(NamedTuple):
    """What the two clocks said around one read of a socket, in ns."""

    polled_ns: int  # monotonic, just before the read
    now_ns: int  # monotonic, just after it
    wall_ns: int  # CLOCK_REALTIME, just after it
    pair_ns: int = 0  # how long it took to read both clocks


def read_clocks(
    monotonic: Callable[[], int] = monotonic_ns, wall: Callable[[], int] = time_ns
) -> Readings:
    """Return both clocks as they are now: the closest of a few pairs, since one may be torn."""
    return min((_pair(monotonic, wall) for _ in range(_TRIES)), key=lambda pair: abs(pair.pair_ns))


def _pair(monotonic: Callable[[], int], wall: Callable[[], int]) -> Readings:
    wall_ns, now_ns, checked_ns = wall(), monotonic(), wall()
    return Readings(now_ns, now_ns, wall_ns, checked_ns - wall_ns)


class ArrivalClock:
    """Map the kernel's receive times of one socket (CLOCK_REALTIME) to the monotonic clock."""

    __slots__ = ("_offset_ns", "_polled_ns")

    def __init__(self, opened: Readings) -> None:
        self._offset_ns = opened.wall_ns - opened.now_ns
        self._polled_ns = opened.polled_ns

    def arrival(self, kernel_ns: int | None, readings: Readings) -> tuple[int, ClockName]:
        """Return the arrival in monotonic ns and the clock that it comes from.

        The kernel's time is taken only if it lies between this socket's previous poll and now,
        and the wall clock was not set since; else the time of reading stands for it.
        """
        offset_ns = readings.wall_ns - readings.now_ns
        if readings.pair_ns > MAX_PAIR_NS:
            offset_ns = self._offset_ns
        steady = abs(offset_ns - self._offset_ns) <= MAX_OFFSET_STEP_NS
        earliest_ns = self._polled_ns
        self._offset_ns = offset_ns
        self._polled_ns = readings.polled_ns
        if kernel_ns is None or not steady:
            return readings.now_ns, "user"
        mapped_ns = kernel_ns - offset_ns
        if earliest_ns <= mapped_ns <= readings.now_ns:
            return mapped_ns, "kernel"
        return readings.now_ns, "user"
