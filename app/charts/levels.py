"""The numbers of each concurrency that a run was asked for, beside those of the whole run."""

from dataclasses import replace

import numpy as np

from app.charts.gaps import Gaps
from app.charts.tally import Tally
from measurements.run_folder.tables import Table
from measurements.run_folder.tail import Batch

Array = np.ndarray


class Levels:
    """A tally for each target, fed with the requests that were sent at it."""

    def __init__(self) -> None:
        self._tallies: dict[float, Tally] = {}
        self._level_of: dict[float, float] = {}  # of requests that have not ended
        self._newest: float | None = None

    def feed(self, batch: Batch, gaps: Gaps, now_s: float) -> None:
        """Take in a batch and its gaps; `now_s` is the newest moment of the run."""
        self._note_targets(batch)
        of_tokens = self._levels(batch.tokens["request_id"])
        of_gaps = self._levels(gaps.request_id)
        for level, tally in self._tallies.items():
            part = replace(
                batch,
                sends=_rows(batch.sends, batch.sends["concurrency"] == level),
                tokens=_rows(batch.tokens, of_tokens == level),
                requests=_rows(batch.requests, batch.requests["concurrency"] == level),
            )
            if level == self._newest or _holds_something(part):
                tally.feed(part, gaps.rows(of_gaps == level), now_s)
        for request_id in batch.requests["request_id"].tolist():
            self._level_of.pop(request_id, None)

    def newest(self) -> tuple[int, Tally] | None:
        """Return the newest target and its tally; None for a run that has had one target."""
        if self._newest is None or len(self._tallies) == 1:
            return None
        return int(self._newest), self._tallies[self._newest]

    def _note_targets(self, batch: Batch) -> None:
        sent_at = batch.sends["concurrency"]
        self._level_of.update(
            zip(batch.sends["request_id"].tolist(), sent_at.tolist(), strict=True)
        )
        asked = batch.load["concurrency"]
        asked = asked[np.isfinite(asked)]
        for level in np.unique(np.append(asked, sent_at[np.isfinite(sent_at)])).tolist():
            self._tallies.setdefault(level, Tally(level))
        if len(asked):
            self._newest = float(asked[-1])

    def _levels(self, request_ids: Array) -> Array:
        return np.array([self._level_of.get(key, np.nan) for key in request_ids.tolist()], float)


def _rows(table: Table, chosen: Array) -> Table:
    return {name: column[chosen] for name, column in table.items()}


def _holds_something(batch: Batch) -> bool:
    tables = (batch.sends, batch.tokens, batch.requests, batch.load)
    return any(len(next(iter(table.values()))) for table in tables)
