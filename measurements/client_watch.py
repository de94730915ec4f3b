"""The worker about itself: how late it reads, how much CPU it takes, what shared a read."""

import time
from collections import Counter
from itertools import accumulate

BIN_NS = 20_000  # the resolution of lag percentiles


class ClientWatch:
    """Figures since the last row of client.csv."""

    def __init__(self) -> None:
        self._lags: Counter[int] = Counter()
        self._chunks = 0
        self._shared = 0
        self._loop_lag_ns = 0
        self._wall_ns = time.monotonic_ns()
        self._cpu_ns = time.process_time_ns()

    def note_lag(self, lag_ns: int) -> None:
        """Count one read that had waited for us so long."""
        self._lags[lag_ns // BIN_NS] += 1

    def note_chunks(self, in_one_read: int) -> None:
        """Count the chunks with generated text of one read."""
        self._chunks += in_one_read
        if in_one_read > 1:
            self._shared += in_one_read

    def note_tick(self, late_ns: int) -> None:
        """Take how late a timer of ours was called."""
        self._loop_lag_ns = max(self._loop_lag_ns, late_ns)

    def row(self, in_flight: int) -> tuple[float | None, ...]:
        """Return the columns of client.csv after `at_s`, and begin anew."""
        wall_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        row = (
            in_flight,
            self._lag_s(0.5),
            self._lag_s(0.99),
            self._loop_lag_ns / 1e9,
            (cpu_ns - self._cpu_ns) / max(wall_ns - self._wall_ns, 1),
            self._shared / self._chunks if self._chunks else None,
        )
        self._wall_ns, self._cpu_ns = wall_ns, cpu_ns
        self._lags.clear()
        self._chunks = self._shared = self._loop_lag_ns = 0
        return row

    def _lag_s(self, share: float) -> float | None:
        """Return the lag (s) that `share` of the reads did not exceed, as its bin's upper end."""
        bins = sorted(self._lags.items())
        total = self._lags.total()
        for (number, _), up_to in zip(bins, accumulate(n for _, n in bins), strict=True):
            if up_to >= share * total:
                return (number + 1) * BIN_NS / 1e9
        return None
