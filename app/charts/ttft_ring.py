"""The newest TTFTs, by send time, with their running percentiles."""

from collections.abc import Sequence

import numpy as np

Array = np.ndarray

SIZE = 4096
RUNNING_REQUESTS = 100  # a running percentile speaks of so many requests
_POINTS = 128  # places at which a running line is worked out
# The rule of the definitions: with k = n (1 - q) samples beyond a percentile, k >= 1 shows it.
_EPSILON = 1e-9


class TtftRing:
    """A ring of the last `SIZE` requests that had a first token and did not fail."""

    def __init__(self, size: int = SIZE) -> None:
        self._ids = np.full(size, -1.0)
        self._sent_s = np.full(size, np.nan)
        self._ttft_s = np.full(size, np.nan)
        self._next = 0

    def add(self, ids: Array, sent_s: Array, ttft_s: Array) -> None:
        """Add requests; the oldest give way."""
        size = len(self._ids)
        ids, sent_s, ttft_s = ids[-size:], sent_s[-size:], ttft_s[-size:]
        slots = (self._next + np.arange(len(ids))) % size
        self._ids[slots] = ids
        self._sent_s[slots] = sent_s
        self._ttft_s[slots] = ttft_s
        self._next = int((self._next + len(ids)) % size)

    def drop(self, ids: Array) -> None:
        """Take requests out again that failed after their first token."""
        if len(ids):
            self._ttft_s[np.isin(self._ids, ids)] = np.nan

    def dots(self) -> tuple[Array, Array]:
        """Return (sent_s, ttft_s) in order of sending."""
        kept = np.flatnonzero(np.isfinite(self._ttft_s) & np.isfinite(self._sent_s))
        order = kept[np.argsort(self._sent_s[kept], kind="stable")]
        return self._sent_s[order], self._ttft_s[order]


def running_percentile(
    sent_s: Array, ttft_s: Array, quantile: float, restarts_s: Sequence[float] = ()
) -> tuple[Array, Array]:
    """Return (time, percentile) over the last `RUNNING_REQUESTS` requests up to each time.

    No percentile mixes requests from before and after one of the moments `restarts_s`. Times
    with too few requests for this percentile are left out.
    """
    ends = np.unique(np.linspace(1, len(ttft_s), min(_POINTS, len(ttft_s))).astype(int))
    if not len(ends):
        return np.empty(0), np.empty(0)
    begins = np.append(0, np.searchsorted(sent_s, np.asarray(restarts_s, float)))
    begins = begins[np.searchsorted(begins, ends - 1, side="right") - 1]
    index = ends[:, None] - 1 - np.arange(RUNNING_REQUESTS)[None, :]
    inside = index >= begins[:, None]
    windows = np.sort(np.where(inside, ttft_s[np.maximum(index, 0)], np.inf), axis=1)
    sizes = np.minimum(ends - begins, RUNNING_REQUESTS)
    rank = (sizes - 1) * quantile
    low = np.floor(rank).astype(int)
    high = np.ceil(rank).astype(int)
    rows = np.arange(len(ends))
    values = windows[rows, low]
    values = values + (windows[rows, high] - values) * (rank - low)
    enough = sizes * (1 - quantile) >= 1 - _EPSILON
    return sent_s[ends - 1][enough], values[enough]
