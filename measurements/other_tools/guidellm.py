"""The words of guidellm 0.8.1.

Its clock starts as the first header byte leaves, so that opening a connection is outside, which
is this lab's own send. (It reads the wall clock; we keep to the monotonic one.)
"""

from collections.abc import Callable

import numpy as np

from measurements.other_tools.raw import RawRun, Stream
from measurements.other_tools.reported import Quantity, ToolReport, known, stepped
from measurements.reply import Status

NAME = "guidellm 0.8.1"


def succeeded(stream: Stream) -> bool:
    """Say whether text or a usage came: a success, also before a clean cut, but not an error."""
    return stream.ended_as(Status.TRUNCATED) and bool(stream.text_s.size or stream.usage)


def ttft(stream: Stream) -> float | None:
    """TTFT = first content, reasoning or tool text - start, in s."""
    return float(stream.text_s[0]) if stream.text_s.size else None


def ttft_answer(stream: Stream) -> float | None:
    """TTFOT = first content or tool text - start, in s."""
    return stream.answer_s


def output_tokens(stream: Stream) -> int:
    """Return n: the usage, else one token a chunk with text."""
    return stream.text_s.size if stream.usage is None else stream.usage


def itl(stream: Stream) -> float | None:
    """ITL = (last text - first text) / (n - 1), in s: one a request; None for n <= 1."""
    n = output_tokens(stream)
    if n <= 1 or not stream.text_s.size:
        return None
    return float(stream.text_s[-1] - stream.text_s[0]) / (n - 1)


def tpot(stream: Stream) -> float | None:
    """TPOT = (last text - start) / n, in s: the TTFT is inside. Without text: [DONE] for last."""
    n = output_tokens(stream)
    last = float(stream.text_s[-1]) if stream.text_s.size else stream.end_s
    return None if n == 0 or last is None else last / n


def e2e(stream: Stream) -> float | None:
    """E2E = after [DONE] - start, in s: a late usage is inside; None where no end was seen."""
    return stream.end_s


def report(raw: RawRun) -> ToolReport:
    """Return what it prints of the successes; failures are a group of their own.

    ITL is weighted by n - 1 and TPOT by n. Throughput is the mean of its distribution of rates,
    which spreads a request's tokens evenly from first to last: the sum of n over the time from
    the first start to the last end.
    """
    good = [stream for stream in raw.streams if succeeded(stream)]
    total = sum(map(output_tokens, good))
    ends = known(map(e2e, good))
    return ToolReport(
        tool=NAME,
        completed=len(good),
        failed=len(raw.streams) - len(good),
        ttft=_one_each(good, ttft),
        ttft_answer=_one_each(good, ttft_answer),
        itl=_weighted(good, itl, lambda stream: output_tokens(stream) - 1),
        tpot=_weighted(good, tpot, output_tokens),
        e2e=None if ends is None else stepped(ends, np.ones(ends.size)),
        output_tokens=total,
        output_tokens_per_s=_per_s(total, raw),
    )


def _one_each(streams: list[Stream], figure: Callable[[Stream], float | None]) -> Quantity:
    return _weighted(streams, figure, lambda _: 1)


def _weighted(
    streams: list[Stream],
    figure: Callable[[Stream], float | None],
    weight: Callable[[Stream], int],
) -> Quantity:
    told = [(value, weight(s)) for s in streams if (value := figure(s)) is not None]
    return stepped([value for value, _ in told], [share for _, share in told])


def _per_s(tokens: int, raw: RawRun) -> float | None:
    starts = [s.sent_s for s in raw.streams if not np.isnan(s.sent_s)]
    ends = [s.sent_s + s.end_s for s in raw.streams if s.end_s is not None]
    took_s = max(ends) - min(starts) if starts and ends else 0.0
    return tokens / took_s if took_s > 0 else None
