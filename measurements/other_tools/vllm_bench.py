"""The words of `vllm bench serve` 0.32.

Its clock starts before the post, so that opening a connection is inside, and every chunk with
choices is a token to it: one with only a role, and the empty one that ends a reply, too.
"""

import numpy as np

from measurements.other_tools.raw import RawRun, Stream
from measurements.other_tools.reported import Quantity, ToolReport, known, linear
from measurements.reply import Status
from measurements.statistics import Floats

NAME = "vllm bench serve 0.32"


def succeeded(stream: Stream) -> bool:
    """Say whether choices came: a success, also before an error or a clean cut."""
    whole = stream.ended_as(Status.TRUNCATED, Status.STREAM_ERROR)
    return whole and stream.choices_s.size > 0


def ttft(stream: Stream) -> float:
    """TTFT = first chunk with choices - start, in s; of a success."""
    return float(stream.choices_s[0]) + stream.connect_s


def gaps(stream: Stream) -> Floats:
    """ITL = every gap between two chunks with choices, in s, however many tokens they hold."""
    return np.diff(stream.choices_s)


def e2e(stream: Stream) -> float:
    """E2E = last chunk with choices - start, in s; of a success."""
    return float(stream.choices_s[-1]) + stream.connect_s


def output_tokens(stream: Stream) -> int | None:
    """Return n: the usage, where a chunk without choices brought it; else its tokenizer counts."""
    return stream.usage if stream.usage_came_alone else None


def tpot(stream: Stream) -> float | None:
    """TPOT = (E2E - TTFT) / (n - 1), in s; None for n <= 1 or an unknown n."""
    n = output_tokens(stream)
    return None if n is None or n <= 1 else (e2e(stream) - ttft(stream)) / (n - 1)


def report(raw: RawRun) -> ToolReport:
    """Return what it prints: all gaps pooled, failures left out, 0 where nothing was measured.

    Throughput is the sum of n over the run's wall time, from the first start to the last moment.
    """
    good = [stream for stream in raw.streams if succeeded(stream)]
    counts = known(map(output_tokens, good))
    total = None if counts is None else int(counts.sum())
    return ToolReport(
        tool=NAME,
        completed=len(good),
        failed=len(raw.streams) - len(good),
        ttft=_or_zero(list(map(ttft, good))),
        itl=_or_zero([gap for stream in good for gap in gaps(stream)]),
        tpot=None if counts is None else _or_zero(_tpots(good)),
        e2e=_or_zero(list(map(e2e, good))),
        output_tokens=total,
        output_tokens_per_s=_per_s(total, raw),
    )


def _tpots(streams: list[Stream]) -> list[float]:
    return [value for value in map(tpot, streams) if value is not None]


def _or_zero(values: list[float]) -> Quantity:
    return linear(values) if values else Quantity(n=0, mean=0.0, p50=0.0, p90=0.0, p99=0.0)


def _per_s(tokens: int | None, raw: RawRun) -> float | None:
    starts = [s.started_s for s in raw.streams if not np.isnan(s.started_s)]
    wall_s = raw.ended_s - min(starts, default=raw.ended_s)
    return tokens / wall_s if tokens is not None and wall_s > 0 else None
