"""Counts of a run under way, from what its log gained since the last look."""

from dataclasses import dataclass

import numpy as np

from measurements.run_folder.tail import Batch


@dataclass
class LevelCounts:
    """Counted requests and their tokens so far; warm-up apart."""

    sent: int = 0
    done: int = 0
    failed: int = 0
    warm: int = 0  # warm-up requests that have ended
    tokens: float = 0.0
    first_s: float = np.nan
    last_s: float = np.nan

    def add(self, batch: Batch) -> None:
        """Count what a batch of new rows holds."""
        counted = batch.requests["warmup"] == 0
        good = batch.requests["status"] == "ok"
        self.sent += int(np.sum(batch.sends["warmup"] == 0))
        self.done += int(np.sum(counted & good))
        self.failed += int(np.sum(counted & ~good))
        self.warm += int(np.sum(~counted))
        self._add_tokens(batch)

    def _add_tokens(self, batch: Batch) -> None:
        arrivals = batch.tokens["arrival_s"]
        if not len(arrivals):
            return
        # A chunk whose tokens are not known counts as one: progress, not a measurement.
        self.tokens += float(np.sum(np.nan_to_num(batch.tokens["tokens"], nan=1.0)))
        self.first_s = np.fmin(self.first_s, arrivals.min())
        self.last_s = np.fmax(self.last_s, arrivals.max())

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second since the first token, 1/s; NaN before there are two."""
        span = self.last_s - self.first_s
        return self.tokens / span if span > 0 else np.nan

    def words(self, asked: int | None) -> str:
        """Return the counts as a line of progress; `asked` is None for a run without a count."""
        of = "" if asked is None else f" of {asked}"
        failed = f", {self.failed} failed" if self.failed else ""
        rate = "" if np.isnan(self.tokens_per_s) else f", {self.tokens_per_s:.1f} tokens/s"
        return f"{self.sent} sent, {self.done}{of} done{failed}{rate}"
