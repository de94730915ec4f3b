"""The words of aiperf 0.13.0.

Its clock starts before the request, so that opening a connection is inside.
"""

import numpy as np

from measurements.other_tools.raw import RawRun, Stream
from measurements.other_tools.reported import ToolReport, known, linear
from measurements.reply import Status
from measurements.statistics import Floats

NAME = "aiperf 0.13.0"


def succeeded(stream: Stream) -> bool:
    """Say whether text came: a success, also before an error or a clean cut."""
    whole = stream.ended_as(Status.TRUNCATED, Status.STREAM_ERROR)
    return whole and stream.text_s.size > 0


def ttft(stream: Stream) -> float:
    """TTFT = first content, reasoning or tool text - start, in s; of a success."""
    return float(stream.text_s[0]) + stream.connect_s


def ttft_answer(stream: Stream) -> float | None:
    """TTFO = first text that is not reasoning - start, in s; None where there is none."""
    return None if stream.answer_s is None else stream.answer_s + stream.connect_s


def chunk_gaps(stream: Stream) -> Floats:
    """ICL = every gap between two chunks with text, in s."""
    return np.diff(stream.text_s)


def e2e(stream: Stream) -> float:
    """E2E = last text - start, in s; of a success."""
    return float(stream.text_s[-1]) + stream.connect_s


def output_tokens(stream: Stream) -> int | None:
    """Return n: the usage, as when it is asked to; its own tokenizer's count cannot be told."""
    return stream.usage


def itl(stream: Stream) -> float | None:
    """ITL = (E2E - TTFT) / (n - 1), in s: one a request; None for n < 2 or an unknown n."""
    n = output_tokens(stream)
    return None if n is None or n <= 1 else (e2e(stream) - ttft(stream)) / (n - 1)


def report(raw: RawRun) -> ToolReport:
    """Return what it prints of the successes; what was not measured is absent.

    Throughput is the sum of n over the time from the first start to the last text.
    """
    good = [stream for stream in raw.streams if succeeded(stream)]
    counts = known(map(output_tokens, good))
    total = None if counts is None else int(counts.sum())
    return ToolReport(
        tool=NAME,
        completed=len(good),
        failed=len(raw.streams) - len(good),
        ttft=linear(list(map(ttft, good))),
        ttft_answer=linear([at for at in map(ttft_answer, good) if at is not None]),
        itl=None if counts is None else linear([v for v in map(itl, good) if v is not None]),
        chunk_gap=linear([gap for stream in good for gap in chunk_gaps(stream)]),
        e2e=linear(list(map(e2e, good))),
        output_tokens=total,
        output_tokens_per_s=_per_s(total, good),
    )


def _per_s(tokens: int | None, good: list[Stream]) -> float | None:
    if tokens is None or not good:
        return None
    first = min(stream.started_s for stream in good)
    last = max(stream.started_s + e2e(stream) for stream in good)
    return tokens / (last - first) if last > first else None
