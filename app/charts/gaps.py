"""Token gaps from a growing token table, joined across batches."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from measurements.run_folder.tables import Table

Array = np.ndarray


@dataclass(frozen=True)
class Gaps:
    """One row a gap between two arrivals of one request, in order of request and arrival."""

    request_id: Array
    arrival_s: Array  # of the later chunk, since the run began
    gap_s: Array  # per token where the count is known, else the chunk gap
    tokens: Array  # tokens that share the gap; NaN where unknown

    def __len__(self) -> int:
        return len(self.gap_s)

    def rows(self, chosen: Array) -> "Gaps":
        """Return the chosen rows."""
        return Gaps(
            self.request_id[chosen],
            self.arrival_s[chosen],
            self.gap_s[chosen],
            self.tokens[chosen],
        )


class GapTracker:
    """Remembers each open request's last arrival, so that a gap may span two batches."""

    def __init__(self) -> None:
        self._last: dict[float, float] = {}

    def feed(self, tokens: Table) -> Gaps:
        """Return the gaps that end in this batch.

        A chunk that is known to carry no new token ends no gap, as in `measurements.gaps`.
        """
        carrying = np.flatnonzero(~(tokens["tokens"] < 1))  # NaN stays
        order = carrying[np.argsort(tokens["request_id"][carrying], kind="stable")]
        ids = tokens["request_id"][order]
        arrivals = tokens["arrival_s"][order]
        counts = tokens["tokens"][order]
        gaps = arrivals - self._arrivals_before(ids, arrivals)
        share = np.where(np.isfinite(counts), counts, 1.0)
        kept = np.isfinite(gaps) & (gaps >= 0)
        return Gaps(
            request_id=ids[kept],
            arrival_s=arrivals[kept],
            gap_s=(gaps / share)[kept],
            tokens=counts[kept],
        )

    def forget(self, request_ids: Iterable[float]) -> None:
        """Drop requests that have ended."""
        for request_id in request_ids:
            self._last.pop(request_id, None)

    def _arrivals_before(self, ids: Array, arrivals: Array) -> Array:
        """Return the arrival before each row within its request; NaN before the first."""
        before = np.full(len(ids), np.nan)
        if not len(ids):
            return before
        before[1:] = arrivals[:-1]
        first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        last = np.r_[first[1:] - 1, len(ids) - 1]
        before[first] = [self._last.get(request_id, np.nan) for request_id in ids[first].tolist()]
        self._last.update(zip(ids[last].tolist(), arrivals[last].tolist(), strict=True))
        return before
