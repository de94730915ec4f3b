"""Samples of one quantity: exact while they are few, in fine bins when they are many."""

import math

import numpy as np

from measurements.statistics import (
    Confidence,
    Figures,
    Percentile,
    confidence,
    interval_ranks,
)

Array = np.ndarray

EXACT_UP_TO = 200_000
_LOWEST_LOG = -6.0  # log10 of seconds
_DECADES = 10
_BINS_PER_DECADE = 512  # neighbouring edges differ by 0.45 %
_BINS = _DECADES * _BINS_PER_DECADE


class Pool:
    """Durations in seconds, kept in order, so that figures cost no sorting.

    Beyond `EXACT_UP_TO` samples a percentile is right to 0.5 % and has no interval.
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._exact_up_to = exact_up_to
        self._sorted = np.empty(0)
        self._counts = np.zeros(_BINS, np.int64)
        self._sum_s = 0.0
        self.n = 0

    def add(self, seconds: Array) -> None:
        """Add samples; what is not finite is no sample."""
        seconds = seconds[np.isfinite(seconds)]
        if not len(seconds):
            return
        self.n += len(seconds)
        self._sum_s += float(seconds.sum())
        place = (np.log10(np.maximum(seconds, 1e-9)) - _LOWEST_LOG) * _BINS_PER_DECADE
        bins = np.clip(place.astype(np.int64), 0, _BINS - 1)
        self._counts += np.bincount(bins, minlength=_BINS)
        if self.exact:
            # A stable sort merges two ordered runs in linear time.
            self._sorted = np.concatenate([self._sorted, np.sort(seconds)])
            self._sorted.sort(kind="stable")
        else:
            self._sorted = np.empty(0)

    @property
    def exact(self) -> bool:
        """Whether percentiles come from the samples themselves."""
        return self.n <= self._exact_up_to

    def figures(self, requests: int | None = None) -> Figures:
        """Return what `measurements.statistics.figures` says of the same samples."""
        return Figures(
            n=self.n,
            requests=self.n if requests is None else requests,
            mean=self._sum_s / self.n if self.n else None,
            p50=self._percentile(0.5),
            p90=self._percentile(0.9),
            p99=self._percentile(0.99),
        )

    def _percentile(self, quantile: float) -> Percentile | None:
        trust = confidence(self.n, quantile)
        if trust is Confidence.HIDDEN:
            return None
        rank = (self.n - 1) * quantile
        if not self.exact:
            return Percentile(value=self._binned(rank), confidence=trust, low=None, high=None)
        ends = interval_ranks(self.n, quantile)
        low, high = (float(self._sorted[end - 1]) for end in ends) if ends else (None, None)
        return Percentile(value=self._between(rank), confidence=trust, low=low, high=high)

    def _between(self, rank: float) -> float:
        """Return the value at a rank, linear between the order statistics."""
        below = self._sorted[math.floor(rank)]
        above = self._sorted[math.ceil(rank)]
        return float(below + (above - below) * (rank - math.floor(rank)))

    def _binned(self, rank: float) -> float:
        chosen = int(np.searchsorted(np.cumsum(self._counts), rank, side="right"))
        return math.pow(10, _LOWEST_LOG + (chosen + 0.5) / _BINS_PER_DECADE)
