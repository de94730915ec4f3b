"""What a tool prints of a run: a mean and percentiles without any doubt beside them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from measurements.statistics import Floats

_QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One quantity in seconds; None where the tool prints nothing."""

    n: int  # values that it comes from
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True)
class ToolReport:
    """A run in a tool's words. None: it has no such word, or it cannot be told from the events."""

    tool: str  # with its version
    completed: int
    failed: int
    ttft: Quantity | None
    ttft_answer: Quantity | None = None
    itl: Quantity | None
    chunk_gap: Quantity | None = None
    tpot: Quantity | None = None
    e2e: Quantity | None
    output_tokens: int | None
    output_tokens_per_s: float | None


def linear(values: ArrayLike) -> Quantity:
    """Return mean and percentiles, linear between order statistics at (n - 1)·q."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return Quantity(n=0)
    p50, p90, p99 = map(float, np.quantile(array, _QUANTILES))
    return Quantity(n=array.size, mean=float(array.mean()), p50=p50, p90=p90, p99=p99)


def stepped(values: ArrayLike, weights: ArrayLike) -> Quantity:
    """Return the weighted mean, and as q-quantile the first value whose weights so far reach q.

    n counts the values that weigh anything.
    """
    array, share = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    array, share = array[share > 0], share[share > 0]
    if not array.size:
        return Quantity(n=0)
    order = np.argsort(array, kind="stable")
    array, reached = array[order], np.cumsum(share[order]) / share.sum()
    places = np.searchsorted(reached, _QUANTILES).clip(max=array.size - 1)
    p50, p90, p99 = map(float, array[places])
    mean = float(np.average(array, weights=share[order]))
    return Quantity(n=array.size, mean=mean, p50=p50, p90=p90, p99=p99)


def known(values: Iterable[float | None]) -> Floats | None:
    """Return the values as an array; None as soon as one of them cannot be told."""
    listed = list(values)
    told = [value for value in listed if value is not None]
    return np.array(told, dtype=np.float64) if len(told) == len(listed) else None


_NAMES = {name: f"{name}_s" for name in ("ttft", "ttft_answer", "itl", "chunk_gap", "tpot", "e2e")}


def as_json(report: ToolReport) -> dict[str, Any]:
    """Return a report as JSON values; durations are named with their unit, empty is null."""
    return {_NAMES.get(name, name): value for name, value in asdict(report).items()}
