"""What the engine itself says of a run: its own mean TTFT and ITL, and its share of each TTFT."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from measurements.run_folder.tables import Table
from measurements.statistics import Floats, mean

Chosen = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class EngineMeans:
    """The engine's own means in seconds, of all that it served; None where it does not tell."""

    ttft_s: float | None
    itl_s: float | None


@dataclass(frozen=True, kw_only=True)
class TtftSplit:
    """Means in seconds of the parts of a TTFT, over the requests whose engine tells them."""

    n: int
    queue_s: float | None  # waiting within the engine
    prefill_s: float | None  # from being scheduled to the first token
    rest_s: float | None  # TTFT - queue - prefill: network, HTTP, tokenizer, the way to the client


def engine_means(metrics: Table, first_token_s: float) -> EngineMeans:
    """Return the means over a run that saw its first counted token at `first_token_s`.

    A mean is the growth of a sum over the growth of its count, from the last row before that
    token to the last row of all.
    """
    before = _floats(metrics, "at_s") <= first_token_s
    return EngineMeans(
        ttft_s=_mean_grown(metrics, "ttft_sum_s", "ttft_count", before),
        itl_s=_mean_grown(metrics, "itl_sum_s", "itl_count", before),
    )


def _mean_grown(metrics: Table, total: str, count: str, before: Chosen) -> float | None:
    grown, counted = (_growth(_floats(metrics, name), before) for name in (total, count))
    if grown is None or counted is None or counted <= 0 or grown < 0:  # less: it began anew
        return None
    return grown / counted


def _growth(values: Floats, before: Chosen) -> float | None:
    known = ~np.isnan(values)
    first, last = values[known & before], values[known]
    return float(last[-1] - first[-1]) if first.size else None


def _floats(table: Table, column: str) -> Floats:
    return np.asarray(table[column], dtype=np.float64)


def ttft_split(requests: Table) -> TtftSplit:
    """Split the mean TTFT of completed requests; only those with every part count."""
    ttft, queue, prefill = (_floats(requests, f"{part}_s") for part in ("ttft", "queue", "prefill"))
    rest = ttft - queue - prefill
    told = ~np.isnan(rest)
    return TtftSplit(
        n=int(told.sum()),
        queue_s=mean(queue[told]),
        prefill_s=mean(prefill[told]),
        rest_s=mean(rest[told]),
    )
