"""What the charts show of a run, in a fixed amount of memory and without Qt."""

from collections import deque

import numpy as np

from app.charts.gaps import Gaps
from app.charts.ttft_ring import TtftRing
from measurements.reply import Status
from measurements.run_folder.tables import Table
from measurements.run_folder.tail import Batch

Array = np.ndarray

COLUMNS = 3600
FIRST_COLUMN_S = 0.5
LOWEST_LOG = -4.0  # log10 of seconds: 0.1 ms
DECADES = 6
BINS_PER_DECADE = 32
BINS = DECADES * BINS_PER_DECADE
_MARGIN = 0.1  # decades
_EMPTY_RANGE = (0.5, 2.0)
_MOST_MOVES = 4096
_SHORTEST_S = 1e-3  # of a run: below it a rate says nothing


def bin_edges_ms() -> Array:
    """Return the `BINS + 1` edges of the ITL bins in milliseconds."""
    return 10.0 ** (LOWEST_LOG + 3 + np.arange(BINS + 1) / BINS_PER_DECADE)


def used_bins(histogram: Array) -> tuple[int, int] | None:
    """Return the first and last bin that hold something.

    The lowest bin is left aside: it collects what shared a read, whose true gap nobody knows.
    """
    used = np.flatnonzero(histogram[1:]) + 1
    return (int(used[0]), int(used[-1])) if len(used) else None


def log_range_ms(histogram: Array) -> tuple[float, float]:
    """Return the range to show in log10 of ms: all used bins, a margin, a decade at least."""
    used = used_bins(histogram)
    if used is None:
        return _EMPTY_RANGE
    low = LOWEST_LOG + 3 + used[0] / BINS_PER_DECADE - _MARGIN
    high = LOWEST_LOG + 3 + (used[1] + 1) / BINS_PER_DECADE + _MARGIN
    missing = max(0.0, 1.0 - (high - low)) / 2
    return round(low - missing, 2), round(high + missing, 2)


def bin_of(seconds: Array) -> Array:
    """Return the bin of each duration; what lies outside goes to the outermost bins."""
    floor = 10.0**LOWEST_LOG
    place = (np.log10(np.maximum(seconds, floor)) - LOWEST_LOG) * BINS_PER_DECADE
    return np.clip(place.astype(np.int64), 0, BINS - 1)


class Picture:
    """Columns of time by bins of ITL, tokens and target per column, and the newest TTFTs.

    A column begins at half a second. When a run outgrows the last column, pairs of columns are
    joined: the whole run stays visible and memory stays the same.
    """

    def __init__(self) -> None:
        self.column_s = FIRST_COLUMN_S
        self.heat = np.zeros((COLUMNS, BINS), np.uint32)  # tokens
        self.histogram = np.zeros(BINS, np.int64)  # tokens, whole run
        self.tokens = np.zeros(COLUMNS)  # that arrived, warm-up too
        self.target = np.full(COLUMNS, np.nan)  # streams asked for
        self.in_flight = np.full(COLUMNS, np.nan)  # streams
        self.ttfts = TtftRing()
        self.now_s = 0.0  # newest moment known of the run
        self.moves_s: deque[float] = deque(maxlen=_MOST_MOVES)  # when the target became another
        self._asked = np.nan
        self._warmup: set[float] = set()

    def feed(self, batch: Batch, gaps: Gaps) -> bool:
        """Take in a batch and its gaps; return whether anything changed."""
        self._make_room(batch)
        self._feed_sends(batch.sends)
        self._feed_tokens(batch.tokens)
        self._feed_gaps(gaps)
        self._feed_requests(batch.requests)
        self._feed_moves(batch.load)
        self._fill(self.target, batch.load, "concurrency", carry=True)
        self._fill(self.in_flight, batch.client, "in_flight", carry=False)
        tables = (batch.sends, batch.tokens, batch.requests, batch.load, batch.client)
        return any(len(next(iter(table.values()))) for table in tables)

    def columns_until_now(self) -> int:
        """Return how many columns are complete."""
        return min(int(self.now_s / self.column_s), COLUMNS)

    def tokens_per_s(self) -> tuple[Array, Array]:
        """Return (middle of each column up to now in seconds, output tokens/s in it).

        The last column counts once half of it is over; at once in a run that has no other.
        """
        count = self.columns_until_now()
        middles = (np.arange(count) + 0.5) * self.column_s
        rates = self.tokens[:count] / self.column_s
        begun_s = count * self.column_s
        part_s = self.now_s - begun_s
        if count == COLUMNS or part_s < (0.5 * self.column_s if count else _SHORTEST_S):
            return middles, rates
        rate = self.tokens[count] / part_s
        return np.append(middles, begun_s + part_s / 2), np.append(rates, rate)

    def target_steps(self) -> tuple[Array, Array]:
        """Return (edges of the columns up to now, streams asked for in each)."""
        count = min(self.columns_until_now() + 1, COLUMNS)
        return np.arange(count + 1) * self.column_s, self.target[:count]

    def recent_tokens_per_s(self, span_s: float = 2.0) -> float:
        """Return tokens/s over the last complete columns; NaN before the first."""
        count = self.columns_until_now()
        wanted = max(1, round(span_s / self.column_s))
        recent = self.tokens[max(0, count - wanted) : count]
        return float(recent.mean() / self.column_s) if len(recent) else float("nan")

    def _make_room(self, batch: Batch) -> None:
        moments = (
            batch.sends["sent_s"],
            batch.tokens["arrival_s"],
            batch.load["at_s"],
            batch.client["at_s"],
        )
        for moment in moments:
            finite = moment[np.isfinite(moment)]
            if len(finite):
                self.now_s = max(self.now_s, float(finite.max()))
        while self.now_s >= COLUMNS * self.column_s:
            self._fold()

    def _fold(self) -> None:
        """Join pairs of columns, so that twice the time fits."""
        half = COLUMNS // 2
        self.heat[:half] = self.heat.reshape(half, 2, BINS).sum(axis=1)
        self.heat[half:] = 0
        self.tokens[:half] = self.tokens.reshape(half, 2).sum(axis=1)
        self.tokens[half:] = 0
        for held in (self.target, self.in_flight):
            pairs = held.reshape(half, 2)
            held[:half] = np.where(np.isfinite(pairs[:, 1]), pairs[:, 1], pairs[:, 0])
            held[half:] = np.nan
        self.column_s *= 2

    def _column(self, seconds: Array) -> Array:
        return np.clip((seconds / self.column_s).astype(np.int64), 0, COLUMNS - 1)

    def _feed_sends(self, sends: Table) -> None:
        self._warmup.update(sends["request_id"][sends["warmup"] == 1].tolist())

    def _feed_tokens(self, tokens: Table) -> None:
        arrivals = tokens["arrival_s"]
        here = np.isfinite(arrivals)
        if not here.any():
            return
        counts = np.nan_to_num(tokens["tokens"][here], nan=1.0)
        columns = self._column(arrivals[here])
        low = int(columns.min())
        added = np.bincount(columns - low, weights=counts)
        self.tokens[low : low + len(added)] += added
        first = here & (tokens["index"] == 0) & ~self._is_warmup(tokens["request_id"])
        since_send = tokens["since_send_s"][first]
        self.ttfts.add(tokens["request_id"][first], arrivals[first] - since_send, since_send)

    def _feed_gaps(self, gaps: Gaps) -> None:
        counted = ~self._is_warmup(gaps.request_id)
        if not counted.any():
            return
        bins = bin_of(gaps.gap_s[counted])
        columns = self._column(gaps.arrival_s[counted])
        tokens = np.nan_to_num(gaps.tokens[counted], nan=1.0)
        self.histogram += np.bincount(bins, weights=tokens, minlength=BINS).astype(np.int64)
        low = int(columns.min())
        cells = np.bincount((columns - low) * BINS + bins, weights=tokens)
        rows = -(-len(cells) // BINS)
        block = np.zeros(rows * BINS, np.uint32)
        block[: len(cells)] = cells
        self.heat[low : low + rows] += block.reshape(rows, BINS)

    def _feed_requests(self, requests: Table) -> None:
        spoilt = (requests["status"] != Status.OK.value) | (requests["warmup"] == 1)
        self.ttfts.drop(requests["request_id"][spoilt])
        self._warmup.difference_update(requests["request_id"].tolist())

    def _feed_moves(self, load: Table) -> None:
        asked = load["concurrency"]
        before = np.append(self._asked, asked)[:-1]
        self.moves_s.extend(load["at_s"][(asked != before) & np.isfinite(before)].tolist())
        self._asked = asked[-1] if len(asked) else self._asked

    def _fill(self, held: Array, table: Table, column: str, *, carry: bool) -> None:
        """Write the newest value of each column of time; `carry` keeps it until the next."""
        if len(table["at_s"]):
            known = np.isfinite(table["at_s"]) & np.isfinite(table[column])
            columns = self._column(table["at_s"][known])
            if carry and len(columns):
                held[columns.max() :] = np.nan  # only carried so far, and out of date now
            held[columns] = table[column][known]
        if carry:
            _carry_forward(held, self.columns_until_now() + 1)

    def _is_warmup(self, ids: Array) -> Array:
        if not self._warmup:
            return np.zeros(len(ids), bool)
        return np.isin(ids, np.fromiter(self._warmup, float, len(self._warmup)))


def _carry_forward(held: Array, until: int) -> None:
    """Fill NaN up to column `until` with the value before it."""
    part = held[:until]
    place = np.where(np.isfinite(part), np.arange(len(part)), 0)
    np.maximum.accumulate(place, out=place)
    part[:] = part[place]
