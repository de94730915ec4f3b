"""Waiting for what must come, with a deadline."""

import asyncio
from collections.abc import Callable

DEADLINE_S = 20.0
POLL_S = 0.002


async def until(met: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as `met()`; the loop goes on meanwhile."""
    for _ in range(round(deadline_s / POLL_S)):
        if met():
            return
        await asyncio.sleep(POLL_S)
    raise AssertionError("it did not come")
