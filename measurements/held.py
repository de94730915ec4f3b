"""When the target concurrency was held, and what arrived then: output tokens per second."""

from dataclasses import dataclass

import numpy as np

from measurements.run_folder.tables import Table
from measurements.states import RunState
from measurements.statistics import Floats

_COUNTED = (RunState.MEASURING.value, RunState.DRAINING.value)


@dataclass(frozen=True, kw_only=True)
class HeldTime:
    """Stretches of a run, in seconds since it began: [start, end)."""

    starts: Floats
    ends: Floats

    @property
    def seconds(self) -> float:
        """How long they are together."""
        return float((self.ends - self.starts).sum())

    def covers(self, moments: Floats) -> Floats:
        """Return 1.0 for each moment within a stretch, else 0.0; stretches are in order."""
        if not self.starts.size:
            return np.zeros(moments.size)
        places = np.searchsorted(self.starts, moments, side="right") - 1
        return np.asarray((places >= 0) & (moments < self.ends[places]), dtype=np.float64)


def held_time(load: Table, run_end_s: float, concurrency: float | None = None) -> HeldTime:
    """Return where the target was in flight, warm-up left out.

    A run that drains has its target in flight until the first stream ends that none follows.
    The last row of a run that was cut off holds until `run_end_s`. With `concurrency`: only
    where that was the target.
    """
    starts = np.asarray(load["at_s"], dtype=np.float64)
    ends = np.append(starts[1:], max(run_end_s, starts[-1])) if starts.size else starts
    chosen = np.isin(load["state"].astype(str), _COUNTED) & (load["held"] == 1)
    if concurrency is not None:
        chosen &= load["concurrency"] == concurrency
    return HeldTime(starts=starts[chosen], ends=ends[chosen])


def tokens_per_s(tokens: Table, held: HeldTime) -> float | None:
    """Return output tokens/s over the held time; None if nothing was held or no count is known."""
    if held.seconds <= 0:
        return None
    inside = held.covers(np.asarray(tokens["arrival_s"], dtype=np.float64))
    total = float(np.asarray(tokens["tokens"], dtype=np.float64)[inside == 1].sum())
    return None if np.isnan(total) else total / held.seconds
