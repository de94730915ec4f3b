"""All that the window knows of one run, fed with the same batches live, past and replayed."""

from dataclasses import replace
from typing import Any

from app.charts.gaps import GapTracker
from app.charts.levels import Levels
from app.charts.picture import Picture
from app.charts.recent import RecentRequests
from app.charts.tally import Tally
from measurements.run_folder.tables import Table, joined
from measurements.run_folder.tail import Batch


class LiveRun:
    """Picture, numbers, levels and newest requests; `version` rises when something came."""

    def __init__(self) -> None:
        self.picture = Picture()
        self.tally = Tally()
        self.levels = Levels()
        self.recent = RecentRequests()
        self.kv_usage: float | None = None  # share of the engine's KV cache, 0 to 1
        self.engine_running: float | None = None  # requests, as the engine counts
        self.engine_waiting: float | None = None
        self.version = 0
        self.in_flight = 0  # requests sent and not ended, warm-up too
        self.damaged = 0  # lines of the log that could not be read
        self._gaps = GapTracker()
        self._ended: list[Table] = []

    def feed(self, batch: Batch) -> None:
        """Take in what came since the last batch."""
        self.in_flight += len(batch.sends["request_id"]) - len(batch.requests["request_id"])
        self.recent.feed(batch.sends, batch.tokens, batch.requests, batch.text)
        batch = self._with_settled_requests(batch)
        self.damaged += batch.damaged
        gaps = self._gaps.feed(batch.tokens)
        self.version += self.picture.feed(batch, gaps)
        self.tally.feed(batch, gaps, self.picture.now_s)
        self.levels.feed(batch, gaps, self.picture.now_s)
        self._gaps.forget(batch.requests["request_id"].tolist())
        self._feed_metrics(batch.server_metrics)

    def _with_settled_requests(self, batch: Batch) -> Batch:
        """Hold each end of a request back by one batch, so that all of its tokens come first.

        The files are read one after the other: an end may be seen before the last tokens, and
        while a past run is read in portions it may be seen long before.
        """
        if batch.more:
            self._ended.append(batch.requests)
            return replace(batch, requests=_none_of(batch.requests))
        settled = joined(self._ended) if self._ended else _none_of(batch.requests)
        self._ended = [batch.requests]
        return replace(batch, requests=settled)

    def _feed_metrics(self, metrics: dict[str, Any]) -> None:
        if metrics and len(metrics["at_s"]):
            self.kv_usage = _known(metrics["kv_usage"][-1])
            self.engine_running = _known(metrics["running"][-1])
            self.engine_waiting = _known(metrics["waiting"][-1])


def _none_of(table: Table) -> Table:
    return {name: column[:0] for name, column in table.items()}


def _known(value: float) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124 - NaN differs from itself
