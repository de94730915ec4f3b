"""Output tokens/s while the target concurrency was held, kept up as a run grows."""

import numpy as np

from measurements.held import held_time
from measurements.run_folder.tables import Table

Array = np.ndarray

# Rows of two files may reach the window up to one flush apart: what is newer stays open.
_SETTLED_AFTER_S = 1.0
_COLUMNS = ("at_s", "state", "concurrency", "held")


class HeldRate:
    """Counts what arrived in held time; memory does not grow with the run.

    With `concurrency`: only in time in which that was the target.
    """

    def __init__(self, concurrency: float | None = None) -> None:
        self._concurrency = concurrency
        self._load: Table = {
            name: np.empty(0, object if name == "state" else float) for name in _COLUMNS
        }
        self._arrivals = np.empty(0)
        self._counts = np.empty(0)
        self._settled_tokens = 0.0
        self._settled_s = 0.0

    def feed(self, load: Table, arrivals: Array, counts: Array, now_s: float | None) -> None:
        """Take in load rows and counted tokens.

        `now_s` is the moment up to which all tables have been read; None: not known yet.
        """
        if len(load["at_s"]):
            self._load = {name: np.append(self._load[name], load[name]) for name in _COLUMNS}
        self._arrivals = np.append(self._arrivals, arrivals)
        self._counts = np.append(self._counts, counts)
        if now_s is not None:
            self._settle(now_s - _SETTLED_AFTER_S)

    def per_s(self, now_s: float) -> float | None:
        """Return tokens per second of held time; None before any."""
        tokens, seconds = self._measure(now_s)
        tokens += self._settled_tokens
        seconds += self._settled_s
        return tokens / seconds if seconds > 0 else None

    def _measure(self, until_s: float) -> tuple[float, float]:
        held = held_time(self._load, until_s, self._concurrency)
        inside = held.covers(self._arrivals) == 1
        return float(self._counts[inside].sum()), held.seconds

    def _settle(self, horizon_s: float) -> None:
        """Count what lies before the horizon for good, and begin the open part there."""
        begun = int(np.searchsorted(self._load["at_s"], horizon_s, side="right"))
        if begun == 0:
            return
        old = {name: column[:begun] for name, column in self._load.items()}
        held = held_time(old, horizon_s, self._concurrency)
        past = self._arrivals < horizon_s
        inside = held.covers(self._arrivals[past]) == 1
        self._settled_tokens += float(self._counts[past][inside].sum())
        self._settled_s += held.seconds
        self._arrivals, self._counts = self._arrivals[~past], self._counts[~past]
        self._load = {name: column[begun - 1 :].copy() for name, column in self._load.items()}
        self._load["at_s"][0] = horizon_s
