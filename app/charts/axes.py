"""Ranges and ticks of the charts, as pure functions: nothing scales itself."""

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_TOPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# Digits of each decade that have a tick, by how many decades are shown.
_DIGITS = ((2.0, (1, 2, 5)), (3.5, (1, 3)), (math.inf, (1,)))
_TIME_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
_SPANS = (
    10,
    15,
    20,
    30,
    45,
    60,
    80,
    100,
    120,
    180,
    240,
    300,
    600,
    1200,
    1800,
    3600,
    7200,
    14400,
    28800,
)
FOLLOW_STEP_S = 0.5
_TICKS = 6
_HEADROOM = 1.08
# How far the largest value may fall before a range shrinks again: no flicker at the border.
_SHRINK = 0.45


@dataclass(frozen=True)
class TimeWindow:
    """The part of a run that all charts over time show, in seconds since the run began."""

    left_s: float = 0.0
    right_s: float = 10.0


def follow(now_s: float, span_s: float | None) -> TimeWindow:
    """Return the window that shows the last `span_s` seconds, or the whole run for None."""
    if span_s is None or now_s <= span_s:
        needed = next((span for span in _SPANS if span >= now_s), now_s)
        return TimeWindow(0.0, float(needed if span_s is None else min(needed, span_s)))
    right = math.ceil(now_s / FOLLOW_STEP_S) * FOLLOW_STEP_S
    return TimeWindow(right - span_s, right)


def time_ticks(window: TimeWindow) -> list[tuple[float, str]]:
    """Return about six round moments with their labels in seconds."""
    span = window.right_s - window.left_s
    step = next((step for step in _TIME_STEPS if span / step <= _TICKS), 86400)
    first = math.ceil(window.left_s / step)
    last = math.floor(window.right_s / step)
    return [(float(k * step), f"{k * step} s") for k in range(first, last + 1)]


def ceiling(largest: float, before: float) -> float:
    """Return the round top of a range that holds `largest`; keep the one before while it fits."""
    if not math.isfinite(largest) or largest <= 0:
        return before
    if before * _SHRINK <= largest * _HEADROOM <= before:
        return before
    return _round_up(largest * _HEADROOM, _TOPS)


def value_ticks(top: float) -> list[tuple[float, str]]:
    """Return three to six round values from 0 to `top` with their labels."""
    step = _round_up(top / 5, _STEPS)
    return [(k * step, short_number(k * step)) for k in range(int(top / step + 1e-9) + 1)]


def decade_ticks(low_log: float, high_log: float) -> list[tuple[float, str]]:
    """Return ticks within each decade, fewer of many; positions in log10, labels as numbers."""
    digits = next(digits for most, digits in _DIGITS if high_log - low_log <= most)
    ticks = []
    for decade in range(math.floor(low_log), math.ceil(high_log) + 1):
        for digit in digits:
            place = decade + math.log10(digit)
            if low_log <= place <= high_log:
                ticks.append((place, short_number(digit * 10.0**decade)))
    return ticks


def short_number(value: float) -> str:
    """Return a number in a few characters: 0.2, 50, 2000, 40k, 3M."""
    for limit, factor, suffix in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= limit:
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.4g}"


def _round_up(value: float, steps: tuple[float, ...]) -> float:
    """Return the next of these steps times a power of ten."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in steps if step * decade >= value * (1 - 1e-9))
