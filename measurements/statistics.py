"""Percentiles and what stands beside them. Pure functions on arrays; NaN means "not measured"."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_SHOWN_FROM = 10  # samples beyond the percentile
_ROUGH_FROM = 1
_EXACT_UP_TO = 10_000  # samples; beyond, the binomial is as good as normal
_Z_95 = 1.959963984540054  # two-sided 95 % of the normal distribution


class Confidence(StrEnum):
    """How far a percentile can be trusted, by the samples that lie beyond it."""

    SHOWN = "shown"
    ROUGH = "rough"
    HIDDEN = "hidden"


@dataclass(frozen=True, kw_only=True)
class Percentile:
    """A percentile with its 95 % interval; the ends are None where n is too small for them."""

    value: float
    confidence: Confidence
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a table shows of one quantity; a percentile is None where n does not allow it."""

    n: int
    requests: int  # that the n samples come from
    mean: float | None
    p50: Percentile | None
    p90: Percentile | None
    p99: Percentile | None


def measured(values: ArrayLike) -> Floats:
    """Return the values that were measured, as a flat float64 array."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[~np.isnan(array)]


def mean(values: ArrayLike) -> float | None:
    """Return the arithmetic mean, None of nothing."""
    array = measured(values)
    return float(array.mean()) if array.size else None


def percentile(values: ArrayLike, q: float) -> float | None:
    """Return the q-quantile, linear between the order statistics at (n - 1)·q; None of nothing."""
    array = measured(values)
    return float(np.quantile(array, q)) if array.size else None


def confidence(n: int, q: float) -> Confidence:
    """Judge the q-quantile of n samples by k = n·(1 - q), the samples beyond it."""
    beyond = round(n * (1.0 - q), 9)  # 100 · (1 - 0.9) is not quite 10
    if beyond >= _SHOWN_FROM:
        return Confidence.SHOWN
    return Confidence.ROUGH if beyond >= _ROUGH_FROM else Confidence.HIDDEN


def interval_ranks(n: int, q: float) -> tuple[int, int] | None:
    """Return ranks (1 to n) of the order statistics that enclose the q-quantile with 95 %.

    The number of samples below the quantile is binomial(n, q), so that P(x(l) <= quantile <
    x(u)) = P(l <= B <= u - 1); each tail gets at most 2.5 % (H. A. David and H. N. Nagaraja, Order
    Statistics, 3rd ed., section 7.1). Beyond 10,000 samples the normal approximation n·q ±
    1.96·sqrt(n·q·(1 - q)) serves. None where n is too small for both ends.
    """
    low, high = _exact_ranks(n, q) if n <= _EXACT_UP_TO else _normal_ranks(n, q)
    return (low, high) if low >= 1 and high <= n else None


def _exact_ranks(n: int, q: float) -> tuple[int, int]:
    if n == 0:
        return 0, 1
    k = np.arange(n, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + math.log(q / (1 - q))
    log_mass = n * math.log(1 - q) + np.concatenate(([0.0], np.cumsum(steps)))
    cumulated = np.cumsum(np.exp(log_mass))  # [j] = P(B <= j)
    low = int(np.searchsorted(cumulated, 0.025, side="right"))
    high = int(np.searchsorted(cumulated, 0.975, side="left")) + 1
    return low, high


def _normal_ranks(n: int, q: float) -> tuple[int, int]:
    half = _Z_95 * math.sqrt(n * q * (1 - q))
    return math.floor(n * q - half), math.ceil(n * q + half) + 1


def judged_percentile(values: ArrayLike, q: float) -> Percentile | None:
    """Return a percentile with confidence and interval; None where n does not allow it."""
    array = np.sort(measured(values))
    trust = confidence(array.size, q)
    if trust is Confidence.HIDDEN:
        return None
    ranks = interval_ranks(array.size, q)
    low, high = (float(array[r - 1]) for r in ranks) if ranks else (None, None)
    return Percentile(value=float(np.quantile(array, q)), confidence=trust, low=low, high=high)


def figures(values: ArrayLike, requests: int | None = None) -> Figures:
    """Return n, mean and percentiles; `requests` where several values come from each request.

    The intervals take the values as independent; pooled gaps of a few requests are not, which is
    why the number of requests stands beside n.
    """
    array = measured(values)
    return Figures(
        n=array.size,
        requests=array.size if requests is None else requests,
        mean=mean(array),
        p50=judged_percentile(array, 0.5),
        p90=judged_percentile(array, 0.9),
        p99=judged_percentile(array, 0.99),
    )
