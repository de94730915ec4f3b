"""Wait for something to become true, for a bounded time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], limit_s: float = 30.0, every_s: float = 0.01) -> T:
    """Return the first true answer; AssertionError where there is none in time."""
    deadline = time.monotonic() + limit_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every_s)
    return answer
