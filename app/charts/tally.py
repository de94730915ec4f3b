"""The numbers of a run as it grows, by the definitions of `measurements.summary`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from app.charts.gaps import Gaps
from app.charts.held_rate import HeldRate
from app.charts.pool import Pool
from measurements.reply import Status
from measurements.run_folder.tables import Table
from measurements.run_folder.tail import Batch
from measurements.statistics import Figures

Array = np.ndarray

NO_FIGURES = Figures(n=0, requests=0, mean=None, p50=None, p90=None, p99=None)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Requests and tokens, warm-up beside the counted ones."""

    sent: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    warmup: int = 0  # sent
    warmup_failed: int = 0
    tokens: float = 0.0  # that arrived, of counted requests
    tokens_known: bool = True  # false: chunks were counted


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What the table and the header show. Durations in seconds."""

    ttft: Figures = NO_FIGURES
    itl: Figures = NO_FIGURES
    tpot: Figures = NO_FIGURES
    e2e: Figures = NO_FIGURES
    itl_is_chunk_gap: bool = False
    output_tokens_per_s: float | None = None  # while the target was held
    counts: Counts = Counts()
    failures: Mapping[str, int] = field(default_factory=dict)  # reason: how many
    burst_share: float | None = None  # of counted chunks, those that shared a read
    client_lag_p99_s: float | None = None  # the load worker's own


class Tally:
    """Completed requests enter the figures when they end; failed and warm-up ones never do.

    With `concurrency` it is fed with the requests of that target alone.
    """

    def __init__(self, concurrency: float | None = None) -> None:
        self._pools = {name: Pool() for name in ("ttft_s", "tpot_s", "e2e_s")}
        self._gaps = Pool()
        self._lags = Pool()
        self._chunks = self._shared = 0
        self._open: list[Gaps] = []  # of requests that have not ended
        # Ended since the last settling: output tokens by its usage, None for one that is left out.
        self._fate: dict[float, float | None] = {}
        self._rate = HeldRate(concurrency)
        self._warmup_open: set[float] = set()
        self._warmup = self._warmup_failed = self._sent = 0
        self._statuses: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._tokens = 0.0
        self._with_gaps = 0  # requests
        self._unresolved = False  # the tokens of some completed request's chunks stay unknown
        self._now_s = 0.0

    def feed(self, batch: Batch, gaps: Gaps, now_s: float) -> None:
        """Take in a batch; `now_s` is the newest moment of the run."""
        self._now_s = now_s
        self._feed_sends(batch.sends)
        self._feed_tokens(batch)
        if len(gaps):
            self._open.append(gaps)
        self._feed_requests(batch.requests)

    def numbers(self) -> Numbers:
        """Return the numbers now; call it twice a second at most."""
        self._settle_gaps()
        lag = self._lags.figures().p99
        return Numbers(
            ttft=self._pools["ttft_s"].figures(),
            itl=self._gaps.figures(self._with_gaps),
            tpot=self._pools["tpot_s"].figures(),
            e2e=self._pools["e2e_s"].figures(),
            itl_is_chunk_gap=not self._tokens_known(),
            output_tokens_per_s=self._rate.per_s(self._now_s),
            counts=self.counts(),
            failures=dict(self._failures.most_common()),
            burst_share=self._shared / self._chunks if self._chunks else None,
            client_lag_p99_s=None if lag is None else lag.value,
        )

    def counts(self) -> Counts:
        """Return how many requests stand where; cheap."""
        failed = sum(self._failures.values())
        return Counts(
            sent=self._sent,
            completed=self._statuses[Status.OK],
            failed=failed,
            cancelled=self._statuses[Status.CANCELLED],
            warmup=self._warmup,
            warmup_failed=self._warmup_failed,
            tokens=self._tokens,
            tokens_known=self._tokens_known(),
        )

    def _feed_sends(self, sends: Table) -> None:
        if not len(sends["request_id"]):
            return
        warm = sends["warmup"] == 1
        self._warmup_open.update(sends["request_id"][warm].tolist())
        self._warmup += int(warm.sum())
        self._sent += int((~warm).sum())

    def _feed_tokens(self, batch: Batch) -> None:
        tokens = batch.tokens
        counted = ~np.isin(tokens["request_id"], list(self._warmup_open))
        arrivals = tokens["arrival_s"][counted]
        counts = np.nan_to_num(tokens["tokens"][counted], nan=1.0)
        self._tokens += float(counts.sum())
        self._chunks += len(arrivals)
        self._shared += int((tokens["burst"][counted] > 1).sum())
        # While a past run is read in portions its tokens lie behind its other rows.
        self._rate.feed(batch.load, arrivals, counts, None if batch.more else self._now_s)

    def _feed_requests(self, requests: Table) -> None:
        if not len(requests["request_id"]):
            return
        statuses = requests["status"].astype(str)
        counted = requests["warmup"] != 1
        good = counted & (statuses == Status.OK.value)
        for name, pool in self._pools.items():
            pool.add(requests[name][good].astype(float))
        self._lags.add(requests["client_lag_s"].astype(float))
        self._statuses.update(statuses[counted].tolist())
        failed = ~np.isin(statuses, (Status.OK.value, Status.CANCELLED.value))
        self._warmup_failed += int((failed & ~counted).sum())
        failed &= counted
        reasons = zip(requests["reason"][failed], statuses[failed], strict=True)
        self._failures.update(str(reason or status) for reason, status in reasons)
        usage = zip(requests["output_tokens"].tolist(), good.tolist(), strict=True)
        fates = [tokens if counts else None for tokens, counts in usage]
        self._fate.update(zip(requests["request_id"].tolist(), fates, strict=True))

    def _tokens_known(self) -> bool:
        """Return whether gaps are inter-token latencies; before any request ended, as it looks."""
        if self._gaps.n or not self._open:
            return not self._unresolved
        return not any(np.isnan(part.tokens).any() for part in self._open)

    def _settle_gaps(self) -> None:
        """Move the gaps of requests that have ended into the pool, or drop them."""
        if not self._fate or not self._open:
            return
        gaps = _joined(self._open)
        ended = np.isin(gaps.request_id, list(self._fate))
        completed = [key for key, tokens in self._fate.items() if tokens is not None]
        good = np.isin(gaps.request_id, completed)
        self._take(gaps.rows(good))
        left = gaps.rows(~ended)
        self._open = [left] if len(left) else []
        self._warmup_open.difference_update(self._fate)
        self._fate.clear()

    def _take(self, gaps: Gaps) -> None:
        """Pool gaps; a chunk is one token where a request's usage counts as many as its chunks."""
        ids, places, times = np.unique(gaps.request_id, return_inverse=True, return_counts=True)
        usage = np.array([self._fate[key] for key in ids.tolist()], float)
        single = (usage == times + 1)[places]  # the first chunk ends no gap
        tokens = np.where(np.isnan(gaps.tokens) & single, 1.0, gaps.tokens)
        self._unresolved |= bool(np.isnan(tokens).any())
        shares = np.nan_to_num(tokens, nan=1.0).astype(np.int64)
        self._gaps.add(np.repeat(gaps.gap_s, shares))
        self._with_gaps += len(ids)


def _joined(parts: list[Gaps]) -> Gaps:
    names = ("request_id", "arrival_s", "gap_s", "tokens")
    return Gaps(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
