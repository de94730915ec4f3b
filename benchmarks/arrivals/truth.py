"""What a client reported against what the server logged. Pure functions; times in ns and s."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIDDLE = 0.8  # of a run's length: what begins and ends it is left out


@dataclass(frozen=True)
class Schedule:
    """When the server's tokens are due: token n at `ttft_ns + n * gap_ns` after its request."""

    ttft_ns: int
    gap_ns: int


@dataclass(frozen=True)
class Served:
    """One whole reply in the server's log; times of CLOCK_MONOTONIC."""

    id: str
    tag: str  # the request's X-Request-Id
    received_ns: int
    sent_ns: NDArray[np.int64]  # one a token


@dataclass(frozen=True)
class Reported:
    """One reply as a client reported it. `key` is the reply's id or the request's tag."""

    key: str
    ttft_s: float
    gaps_s: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """How far a client was from the truth, in seconds."""

    replies: int  # that both sides know
    ttft_mean: float  # reported minus true, signed
    ttft_p99: float  # of its magnitude
    gap_p99: float  # of the magnitude of (reported gap - true gap)
    gaps: int


@dataclass(frozen=True, kw_only=True)
class Offered:
    """What the server saw of a run, over its middle 80 %."""

    lateness_p99_s: float  # of all tokens: sent - due
    in_flight: float  # mean of the requests between receipt and last token
    tokens_per_s: float


def errors(served: Iterable[Served], reported: Iterable[Reported]) -> Errors:
    """Join by id or tag; a reply with another number of gaps than were sent raises ValueError."""
    known = {key: reply for reply in served for key in (reply.id, reply.tag) if key}
    pairs = [(known[reply.key], reply) for reply in reported if reply.key in known]
    if not pairs:
        raise ValueError("No reported reply is in the server's log.")
    ttft = np.array([reply.ttft_s - true_ttft_s(truth) for truth, reply in pairs])
    gaps = np.concatenate([_gap_errors(truth, reply) for truth, reply in pairs])
    return Errors(
        replies=len(pairs),
        ttft_mean=float(ttft.mean()),
        ttft_p99=_p99(np.abs(ttft)),
        gap_p99=_p99(np.abs(gaps)),
        gaps=gaps.size,
    )


def true_ttft_s(reply: Served) -> float:
    """Return the time from the request's receipt to the first token's send."""
    return float(reply.sent_ns[0] - reply.received_ns) / 1e9


def _gap_errors(truth: Served, reply: Reported) -> NDArray[np.float64]:
    true_s = np.diff(truth.sent_ns) / 1e9
    if true_s.size != reply.gaps_s.size:
        raise ValueError(f"{reply.gaps_s.size} gaps were reported where {true_s.size} were sent.")
    return reply.gaps_s - true_s


def _p99(values: NDArray[np.float64]) -> float:
    return float(np.quantile(values, 0.99)) if values.size else float("nan")


def offered(served: Sequence[Served], schedule: Schedule) -> Offered:
    """Return the server's own view of a run."""
    start_ns, end_ns = middle(served)
    inside = [
        min(int(reply.sent_ns[-1]), end_ns) - max(reply.received_ns, start_ns) for reply in served
    ]
    sent = np.concatenate([reply.sent_ns for reply in served])
    within = ((sent >= start_ns) & (sent < end_ns)).sum()
    return Offered(
        lateness_p99_s=_p99(np.concatenate([_lateness_s(r, schedule) for r in served])),
        in_flight=sum(max(0, each) for each in inside) / (end_ns - start_ns),
        tokens_per_s=float(within) / ((end_ns - start_ns) / 1e9),
    )


def _lateness_s(reply: Served, schedule: Schedule) -> NDArray[np.float64]:
    due_ns = reply.received_ns + schedule.ttft_ns + schedule.gap_ns * np.arange(reply.sent_ns.size)
    return np.asarray((reply.sent_ns - due_ns) / 1e9)


def middle(served: Sequence[Served]) -> tuple[int, int]:
    """Return the bounds (ns) of the middle 80 % between first receipt and last token."""
    first = min(reply.received_ns for reply in served)
    last = max(int(reply.sent_ns[-1]) for reply in served)
    edge = round((last - first) * (1 - MIDDLE) / 2)
    return first + edge, last - edge


def rate_in_middle(arrivals_s: NDArray[np.float64]) -> float:
    """Return the tokens/s that arrived over the middle 80 % between first and last arrival."""
    first, last = arrivals_s.min(), arrivals_s.max()
    edge = (last - first) * (1 - MIDDLE) / 2
    inside = (arrivals_s >= first + edge) & (arrivals_s < last - edge)
    return float(inside.sum() / (last - first - 2 * edge))


def cpu_per_1000_tokens(
    client: Mapping[str, NDArray[np.float64]], arrivals_s: NDArray[np.float64]
) -> float:
    """Return CPU seconds of the worker per 1,000 tokens, between its first and last own row."""
    at_s, share = client["at_s"], client["cpu_share"]
    if at_s.size < 2:  # noqa: PLR2004 - a stretch of time needs two ends
        return float("nan")
    cpu_s = float((share[1:] * np.diff(at_s)).sum())
    arrived = int(((arrivals_s > at_s[0]) & (arrivals_s <= at_s[-1])).sum())
    return 1000 * cpu_s / arrived if arrived else float("nan")


def median(values: Iterable[float]) -> float:
    """Return the median of those that were measured, NaN of nothing."""
    found = np.array([value for value in values if not np.isnan(value)])
    return float(np.median(found)) if found.size else float("nan")
