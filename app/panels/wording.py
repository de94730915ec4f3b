"""Figures as a screen shows them: milliseconds, few digits, nothing where nothing was measured."""

from measurements.statistics import Confidence, Figures, Percentile

NOTHING = "-"
_MANY = 10_000
_MOST_SHARED_READS = 0.01  # share of chunks
_LARGEST_LAG_S = 0.005  # of the client, p99


def milliseconds(seconds: float | None) -> str:
    """Return a duration in ms with three digits or so, without the unit."""
    if seconds is None:
        return NOTHING
    value = seconds * 1e3
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004


def percentile_text(found: Percentile | None) -> str:
    """Return a percentile in ms; `~` stands before a rough one."""
    if found is None:
        return NOTHING
    mark = "~" if found.confidence is Confidence.ROUGH else ""
    return mark + milliseconds(found.value)


def percentile_tip(name: str, found: Percentile | None, figures: Figures) -> str:
    """Return how far a percentile can be trusted, in words."""
    if found is None:
        return f"{name}: {figures.n} samples are too few for it."
    words = f"{name} of {figures.n:,} samples from {figures.requests:,} requests, in ms"
    if found.low is not None and found.high is not None:
        ends = f"{milliseconds(found.low)} to {milliseconds(found.high)}"
        words += f"; 95 % interval {ends}"
    if found.confidence is Confidence.ROUGH:
        words += "; rough (~): fewer than ten samples lie beyond it"
    return f"{words}."


def doubts(burst_share: float | None, client_lag_s: float | None) -> list[str]:
    """Return why the figures may be wrong, in words; the limits are those of the definitions."""
    found = []
    if burst_share is not None and burst_share > _MOST_SHARED_READS:
        found.append(f"{burst_share:.1%} of the chunks shared a read: their gaps are uncertain.")
    if client_lag_s is not None and client_lag_s > _LARGEST_LAG_S:
        lag = milliseconds(client_lag_s)
        found.append(f"The load is heavy for its client: its own lag is {lag} ms at p99.")
    return found


def rate(per_s: float | None) -> str:
    """Return a rate with three digits or so, without the unit."""
    if per_s is None or per_s != per_s:  # noqa: PLR0124 - NaN differs from itself
        return NOTHING
    return f"{per_s:.1f}" if per_s < 100 else f"{per_s:,.0f}"  # noqa: PLR2004


def count(number: int) -> str:
    """Return a count short enough for a column."""
    return f"{number:,}" if number < _MANY else f"{number / 1e3:,.0f}k"


def value_of(found: Percentile | None) -> float:
    """Return a percentile in seconds, NaN where it is not shown."""
    return float("nan") if found is None else found.value
