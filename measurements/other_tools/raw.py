"""The raw events of a run, a stream a request, before anybody's rules."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from measurements.reply import Status
from measurements.run_folder.reader import Run
from measurements.run_folder.tables import Table
from measurements.statistics import Floats
from measurements.summary import last_moment

_CHOICES = ("role", "empty", "finish")
_ENDS = ("done", "end")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """One request and what came for it. Arrivals are in seconds since the send, in their order."""

    status: str
    sent_s: float = 0.0  # since the run began; NaN where no connection could be opened
    connect_s: float = 0.0  # opening its connection, just before the send; 0: it was open
    usage: int | None = None  # output tokens by the server's count
    text_s: Floats  # chunks with generated text …
    kinds: tuple[str, ...] = ()  # … and what that is: content, reasoning, tool
    other_s: Floats  # what came without text …
    whats: tuple[str, ...] = ()  # … and what that was, as in events.csv

    @property
    def started_s(self) -> float:
        """When its connection began to be opened, or it was sent on an open one."""
        return self.sent_s - self.connect_s

    @property
    def choices_s(self) -> Floats:
        """Arrivals of all chunks whose choices are not empty."""
        return np.sort(np.concatenate((self.text_s, self._others(_CHOICES))))

    @property
    def answer_s(self) -> float | None:
        """Arrival of the first text that is not reasoning."""
        spoken = (at for at, kind in zip(self.text_s, self.kinds, strict=True) if _spoken(kind))
        return next(map(float, spoken), None)

    @property
    def end_s(self) -> float | None:
        """Arrival of [DONE], or of the body's whole end without it; None where it was cut off."""
        ends = self._others(_ENDS)
        return float(ends[0]) if ends.size else None

    @property
    def usage_came_alone(self) -> bool:
        """Whether a chunk without choices brought the usage."""
        return "usage" in self.whats

    def ended_as(self, *broken: Status) -> bool:
        """Whether it ended well, or with a whole body in one of the ways that a tool overlooks."""
        return self.status == Status.OK or (self.status in broken and self.end_s is not None)

    def _others(self, wanted: Sequence[str]) -> Floats:
        return self.other_s[[what in wanted for what in self.whats]]


@dataclass(frozen=True, kw_only=True)
class RawRun:
    """The counted requests of a run that ended by themselves, and the run's last moment."""

    streams: tuple[Stream, ...]
    ended_s: float  # since the run began


def raw_run(run: Run) -> RawRun:
    """Return the streams of a run; warm-up and what our own stop cancelled are left out."""
    chosen = (run.requests["warmup"] == 0) & (run.requests["status"] != Status.CANCELLED.value)
    requests = {name: column[chosen] for name, column in run.requests.items()}
    ids = _floats(requests, "request_id")
    texts, others = _places(run.tokens, ids), _places(run.events, ids)
    arrivals, kinds = _floats(run.tokens, "since_send_s"), run.tokens["kind"]
    moments, whats = _floats(run.events, "since_send_s"), run.events["what"]
    streams = tuple(
        Stream(
            status=str(status),
            sent_s=float(sent),
            connect_s=float(np.nan_to_num(connect)),
            usage=None if np.isnan(usage) else int(usage),
            text_s=arrivals[text],
            kinds=tuple(map(str, kinds[text])),
            other_s=moments[other],
            whats=tuple(map(str, whats[other])),
        )
        for status, sent, connect, usage, text, other in zip(
            requests["status"],
            *(_floats(requests, name) for name in ("sent_s", "connect_s", "output_tokens")),
            texts,
            others,
            strict=True,
        )
    )
    return RawRun(streams=streams, ended_s=last_moment(run))


def _places(table: Table, ids: Floats) -> list[NDArray[np.intp]]:
    """Return, for each request, where its rows are, in the order in which they arrived."""
    owners = _floats(table, "request_id")
    order = np.lexsort((_floats(table, "since_send_s"), owners))
    sorted_owners = owners[order]
    begins = np.searchsorted(sorted_owners, ids, side="left")
    ends = np.searchsorted(sorted_owners, ids, side="right")
    return [order[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _floats(table: Table, name: str) -> Floats:
    return np.asarray(table[name], dtype=np.float64)


def _spoken(kind: str) -> bool:
    return kind != "reasoning"
