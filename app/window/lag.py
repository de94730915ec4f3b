"""How late and how long the window's own ticks are."""

from collections import deque

_TICKS = 90  # about three seconds


class Lag:
    """The worst of the last ticks, in seconds."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=_TICKS)
        self._busy: deque[float] = deque(maxlen=_TICKS)
        self._before: float | None = None

    def note(self, began_s: float, ended_s: float, period_s: float) -> None:
        """Take in one tick, on a monotonic clock."""
        if self._before is not None:
            self._late.append(max(0.0, began_s - self._before - period_s))
        self._before = began_s
        self._busy.append(ended_s - began_s)

    @property
    def late_s(self) -> float:
        """The longest delay of a tick."""
        return max(self._late, default=0.0)

    @property
    def busy_s(self) -> float:
        """The longest tick."""
        return max(self._busy, default=0.0)
