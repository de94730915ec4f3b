"""Everything that is not reading: done afterwards, in short slices between polls of the sockets."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

SLICE_NS = 1_000_000
# What may wait runs together, since a job among its like finds the processor's caches warm. So long
# it waits, in s (the log is flushed as often), and so many at most.
BATCH_S = 0.02
BATCH_JOBS = 128
# A poll that returned this soon after a slice found bytes that may have come during the slice.
AT_ONCE_NS = 200_000


class Pump:
    """A queue of jobs that yields to the loop's poll after each slice of about a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, batch_s: float = BATCH_S) -> None:
        self._loop = loop
        self._batch_s = batch_s
        self._jobs: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._scheduled = False
        self._alarm: asyncio.TimerHandle | None = None  # rings for what may wait
        self._began_ns = self._ended_ns = monotonic_ns()

    def post(self, job: Callable[..., None], *args: Any) -> None:
        """Queue a job; jobs run in the order in which they were posted."""
        self._jobs.append((job, args))
        self._schedule()

    def defer(self, job: Callable[..., None], *args: Any) -> None:
        """Queue a job that may wait for `batch_s` at most, so that more of its kind can join it."""
        self._jobs.append((job, args))
        if len(self._jobs) >= BATCH_JOBS or not self._batch_s:
            self._schedule()
        elif self._alarm is None and not self._scheduled:
            self._alarm = self._loop.call_later(self._batch_s, self._schedule)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._slice)

    def unpolled_ns(self, now_ns: int) -> int:
        """Return how long the sockets had not been polled before the poll that has just returned.

        0 where the loop was waiting in its poll, ready to be woken by the first byte.
        """
        waited_in_poll = now_ns - self._ended_ns > AT_ONCE_NS
        return 0 if waited_in_poll else now_ns - self._began_ns

    def _slice(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._began_ns = monotonic_ns()
        until_ns = self._began_ns + SLICE_NS
        try:
            while self._jobs:
                job, args = self._jobs.popleft()
                job(*args)
                if monotonic_ns() >= until_ns:
                    break
        finally:
            self._ended_ns = monotonic_ns()
            self._scheduled = bool(self._jobs)
            if self._scheduled:
                self._loop.call_soon(self._slice)
