"""When the next request is due: all in which an open loop and a closed one differ."""

import random
from collections.abc import Iterator
from itertools import accumulate, count, repeat
from typing import Protocol

from measurements import plan


def due_times(settings: plan.Load) -> Iterator[float]:
    """Yield when each request is due, in seconds since the schedule began; without end.

    constant: k / rate for k = 0, 1, 2, …; poisson: gaps drawn from the exponential distribution
    with mean 1 / rate, the first one before the first request, the same for the same seed.
    """
    rate = settings.rate
    if rate is None:
        raise ValueError("a schedule needs a rate")
    if settings.arrival == "constant":
        return (number / rate for number in count())
    draw = random.Random(settings.seed)  # noqa: S311 - a repeatable schedule, no secret
    return accumulate(map(draw.expovariate, repeat(rate)))


class Arrivals(Protocol):
    """Gives the moments at which requests are due, in monotonic ns."""

    def due_ns(self, now_ns: int) -> int:
        """Return when the next request is due."""

    def take(self, now_ns: int) -> int:
        """Return the same, and go on to the request after it."""

    def is_late(self, now_ns: int) -> bool:
        """Return whether a request was due before now and has been kept waiting."""


class AtOnce:
    """The closed loop: a request is due as soon as a stream is free to send it."""

    def due_ns(self, now_ns: int) -> int:
        """Return the present."""
        return now_ns

    def take(self, now_ns: int) -> int:
        """Return the present."""
        return now_ns

    def is_late(self, now_ns: int) -> bool:  # noqa: ARG002 - what is sent at once is never late
        """Return no."""
        return False


class Scheduled:
    """The open loop: a request is due when its schedule says so, whatever the server does."""

    def __init__(self, due_s: Iterator[float], began_ns: int) -> None:
        self._due_s = due_s
        self._began_ns = began_ns
        self._next_ns = self._following()

    def due_ns(self, now_ns: int) -> int:  # noqa: ARG002 - a schedule does not ask for the time
        """Return the schedule's next moment; it may have passed."""
        return self._next_ns

    def take(self, now_ns: int) -> int:  # noqa: ARG002 - see above
        """Return the schedule's next moment, and go on to the one after it."""
        taken_ns, self._next_ns = self._next_ns, self._following()
        return taken_ns

    def is_late(self, now_ns: int) -> bool:
        """Return whether the schedule's next moment has passed."""
        return self._next_ns < now_ns

    def _following(self) -> int:
        return self._began_ns + round(next(self._due_s) * 1e9)


def arrivals(settings: plan.Load, now_ns: int) -> Arrivals:
    """Return the arrivals of a load whose counted part begins now."""
    return AtOnce() if settings.rate is None else Scheduled(due_times(settings), now_ns)
