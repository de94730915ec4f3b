"""What a run says, by the definitions of this lab: counted requests only, failures beside."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measurements.engine_side import TtftSplit, engine_means, ttft_split
from measurements.gaps import pooled_gaps, with_chunk_tokens, with_mean_tokens
from measurements.held import held_time, tokens_per_s
from measurements.load_marks import load_marks
from measurements.reply import Status
from measurements.run_folder.reader import Run
from measurements.run_folder.tables import Table
from measurements.statistics import Confidence, Figures, Percentile, figures, mean, percentile

_MOST_SHARED_READS = 0.01  # share of chunks
_LARGEST_LAG_S = 0.005  # of the client, p99


@dataclass(frozen=True, kw_only=True)
class LoadFigures:
    """What was measured at one concurrency, or at all of a run. Times in seconds.

    Latencies come from completed requests alone; `failed` counts what ended otherwise, except
    for what the person's own stop cancelled.
    """

    concurrency: int | None  # the target; None where a run had several
    requests: int  # that ended, warm-up left out
    completed: int
    failed: int
    cancelled: int
    by_status: dict[str, int]
    failures: dict[str, int]  # reason: how many
    ttft: Figures
    ttft_answer: Figures
    ttft_split: TtftSplit  # the engine's own shares of it
    connect_mean_s: float | None  # of new connections; never part of a TTFT
    itl: Figures
    itl_is_chunk_gap: bool  # tokens per chunk are unknown
    tpot: Figures
    e2e: Figures
    from_plan: Figures  # E2E from the planned moment; of an open loop alone
    output_tokens_per_s: float | None  # while the target was held
    output_chunks_per_s: float | None
    held_s: float
    in_flight_mean: float | None

    @property
    def failed_share(self) -> float | None:
        """Failed of those that completed or failed."""
        ended = self.completed + self.failed
        return self.failed / ended if ended else None


@dataclass(frozen=True, kw_only=True)
class Summary(LoadFigures):
    """A whole run; `levels` has the same figures for each concurrency if the slider moved."""

    rate: float | None  # requests per second that were asked for; None: closed loop
    warmup_requests: int
    levels: tuple[LoadFigures, ...]
    burst_share: float | None  # of counted chunks, those that shared a read
    client_lag_p99_s: float | None
    engine_ttft_mean_s: float | None  # the engine's own, of all that it served meanwhile
    engine_itl_mean_s: float | None
    marks: tuple[str, ...]  # why the figures may be wrong, in words


def summarize(run: Run) -> Summary:
    """Return the figures of a run; warm-up is left out of all of them."""
    counted = _counted(run)
    levels = np.unique(_measured(counted.requests["concurrency"]))
    share = _burst_share(counted.tokens)
    lag = _client_lag(run)
    engine = engine_means(run.server_metrics, _first_token(counted.tokens))
    return Summary(
        **_fields(_level(counted, float(levels[0]) if levels.size == 1 else None, whole=True)),
        rate=_rate(run),
        warmup_requests=int((run.requests["warmup"] == 1).sum()),
        levels=tuple(_level(counted, float(level)) for level in levels) if levels.size > 1 else (),
        burst_share=share,
        client_lag_p99_s=lag,
        engine_ttft_mean_s=engine.ttft_s,
        engine_itl_mean_s=engine.itl_s,
        marks=(*_marks(share, lag), *load_marks(counted.requests, _plan(run))),
    )


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """The rows of a run that count."""

    requests: Table
    tokens: Table
    arrived: Table  # the same, with unknown tokens filled in for tokens/s
    load: Table
    client: Table
    end_s: float
    open_loop: bool


def _counted(run: Run) -> _Counted:
    sends = _rows(run.sends, run.sends["warmup"] == 0)
    tokens = _rows(run.tokens, np.isin(run.tokens["request_id"], sends["request_id"]))
    return _Counted(
        requests=_rows(run.requests, run.requests["warmup"] == 0),
        tokens=with_chunk_tokens(tokens, run.requests),
        arrived=with_mean_tokens(tokens, run.requests),
        load=run.load,
        client=run.client,
        end_s=last_moment(run),
        open_loop=_rate(run) is not None,
    )


def last_moment(run: Run) -> float:
    """Return the last moment that the run recorded, in seconds since it began."""
    columns = (
        *(table["at_s"] for table in (run.load, run.client, run.events)),
        run.tokens["arrival_s"],
        run.sends["sent_s"],
    )
    return max((float(_measured(column).max(initial=0.0)) for column in columns), default=0.0)


def _first_token(tokens: Table) -> float:
    return float(_measured(tokens["arrival_s"]).min(initial=np.inf))


def _level(counted: _Counted, concurrency: float | None, *, whole: bool = False) -> LoadFigures:
    """Return the figures at one concurrency, or of all requests if `whole`."""
    requests, tokens = counted.requests, counted.tokens
    if not whole:
        requests = _rows(requests, requests["concurrency"] == concurrency)
    good = _rows(requests, requests["status"] == Status.OK.value)
    failed = _rows(
        requests,
        ~np.isin(requests["status"].astype(str), (Status.OK.value, Status.CANCELLED.value)),
    )
    gaps = pooled_gaps(_rows(tokens, np.isin(tokens["request_id"], good["request_id"])))
    held = held_time(counted.load, counted.end_s, None if whole else concurrency)
    inside = held.covers(np.asarray(counted.client["at_s"], dtype=np.float64)) == 1
    return LoadFigures(
        concurrency=None if concurrency is None else int(concurrency),
        requests=_size(requests),
        completed=_size(good),
        failed=_size(failed),
        cancelled=_size(requests) - _size(good) - _size(failed),
        by_status=_counted_texts(requests["status"]),
        failures=_reasons(failed),
        ttft=figures(good["ttft_s"].astype(float)),
        ttft_answer=figures(good["ttft_answer_s"].astype(float)),
        ttft_split=ttft_split(good),
        connect_mean_s=mean(good["connect_s"].astype(float)),
        itl=figures(gaps.seconds, gaps.requests),
        itl_is_chunk_gap=gaps.of_chunks,
        tpot=figures(good["tpot_s"].astype(float)),
        e2e=figures(good["e2e_s"].astype(float)),
        from_plan=figures(_since_plan(good) if counted.open_loop else ()),
        output_tokens_per_s=tokens_per_s(counted.arrived, held),
        output_chunks_per_s=tokens_per_s({**tokens, "tokens": np.ones(_size(tokens))}, held),
        held_s=held.seconds,
        in_flight_mean=mean(counted.client["in_flight"][inside].astype(float)),
    )


def _since_plan(requests: Table) -> NDArray[np.float64]:
    """Return the time from plan, planned → last generated text: E2E and the wait for its send."""
    wait = requests["sent_s"].astype(float) - requests["planned_s"].astype(float)
    return np.asarray(wait + requests["e2e_s"].astype(float), dtype=np.float64)


def _plan(run: Run) -> dict[str, Any]:
    """Return the run's plan, as far as the record has one."""
    plan = run.record.get("plan")
    return plan if isinstance(plan, dict) else {}


def _rate(run: Run) -> float | None:
    load = _plan(run).get("load")
    return load.get("rate") if isinstance(load, dict) else None


def _fields(level: LoadFigures) -> dict[str, Any]:
    return {name: getattr(level, name) for name in LoadFigures.__dataclass_fields__}


def _rows(table: Table, chosen: NDArray[np.bool_]) -> Table:
    return {name: column[chosen] for name, column in table.items()}


def _size(table: Table) -> int:
    return len(next(iter(table.values())))


def _measured(column: NDArray[np.generic]) -> NDArray[np.float64]:
    values = np.asarray(column, dtype=np.float64)
    return values[~np.isnan(values)]


def _reasons(failed: Table) -> dict[str, int]:
    """Count failures by reason, the most frequent first; the status where no reason is given."""
    return _counted_texts(np.where(failed["reason"] == "", failed["status"], failed["reason"]))


def _counted_texts(texts: NDArray[np.generic]) -> dict[str, int]:
    return dict(Counter(map(str, texts)).most_common())


def _burst_share(tokens: Table) -> float | None:
    shared = np.asarray(tokens["burst"], dtype=np.float64) > 1
    return mean(shared.astype(np.float64))


def _client_lag(run: Run) -> float | None:
    """Return the p99 of the requests' own lags; of the worker's, where none has ended."""
    lags = _measured(run.requests["client_lag_s"])
    return percentile(lags if lags.size else _measured(run.client["lag_p99_s"]), 0.99)


def _marks(burst_share: float | None, lag_s: float | None) -> tuple[str, ...]:
    marks = []
    if burst_share is not None and burst_share > _MOST_SHARED_READS:
        marks.append(
            f"This load was too heavy for its client: {burst_share:.1%} of the chunks shared a "
            "read with another one, so that their gaps are uncertain."
        )
    if lag_s is not None and lag_s > _LARGEST_LAG_S:
        marks.append(
            f"This load was too heavy for its client: its own lag was {lag_s * 1000:.1f} ms at p99."
        )
    return tuple(marks)


_LATENCIES = ("ttft", "ttft_answer", "itl", "tpot", "e2e", "from_plan")
_NAMES = {name: f"{name}_s" for name in _LATENCIES}


def as_json(summary: LoadFigures) -> dict[str, Any]:
    """Return a summary as JSON values; durations are named with their unit, empty is null."""
    document: dict[str, Any] = {}
    for name in summary.__dataclass_fields__:
        value = getattr(summary, name)
        if name == "levels":
            value = [as_json(level) for level in value]
        elif name == "ttft_split":
            value = asdict(value)
        document[_NAMES.get(name, name)] = figures_json(value) if name in _NAMES else value
    return {**document, "failed_share": summary.failed_share}


def figures_json(values: Figures) -> dict[str, Any]:
    """Return n, requests, mean and percentiles; which are rough, and the 95 % intervals."""
    found = {q: getattr(values, q) for q in ("p50", "p90", "p99")}
    return {
        "n": values.n,
        "requests": values.requests,
        "mean": values.mean,
        **{q: p.value if p else None for q, p in found.items()},
        "rough": [q for q, p in found.items() if p and p.confidence is Confidence.ROUGH],
        "intervals": {q: _interval(p) for q, p in found.items() if p},
    }


def _interval(found: Percentile) -> list[float | None]:
    return [found.low, found.high]
