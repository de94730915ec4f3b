"""The assignment's results: a table for a person, one JSON document for a program."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import zip_longest
from typing import Any

from app.kv import KvAnswer
from app.level import Level
from app.measure import Outcome
from measurements.other_tools.reported import ToolReport
from measurements.other_tools.reported import as_json as report_json
from measurements.statistics import Confidence, Figures, Percentile
from measurements.summary import LoadFigures, Summary, figures_json

NOTHING = "\N{EN DASH}"
ROUGH = "~"
_PERCENTILES = ("p50", "p90", "p99")


@dataclass(frozen=True)
class _Row:
    """A line of the table: a figure of each level as text, and as numbers for the ratio."""

    label: str
    cells: tuple[str, ...]
    values: tuple[float | None, ...] = ()


def as_table(outcome: Outcome, kv: KvAnswer | str, comparison: str = "") -> str:
    """Return the figures of all levels side by side, the KV cache, and where the log lies.

    `comparison`: a table of another tool's words, where one was asked for.
    """
    if not outcome.levels:  # nothing was measured, and the sentence on stderr says why
        return ""
    parts = [_headline(outcome), levels_table(outcome.levels), *_remarks(outcome.levels)]
    parts += [comparison, _kv_words(outcome, kv), _folders(outcome.levels)]
    return "\n\n".join(part for part in parts if part)


def as_json(outcome: Outcome, kv: KvAnswer | str, reports: Sequence[ToolReport] = ()) -> str:
    """Return one JSON document; durations in seconds, what was not measured is null.

    `reports`: each level in another tool's words, where that was asked for.
    """
    engine = outcome.engine
    document = {
        "model": engine.checkpoint or None,
        "engine": {
            "kind": engine.settings.kind,
            "version": engine.version or None,
            "device": engine.device or None,
            "command_line": engine.command_line or None,
            "base_url": engine.base_url or None,
            "seconds_to_ready": engine.elapsed_s,
            "kv_tokens": engine.figures.get("kv_tokens"),
        },
        "levels": [
            _level_json(level, said) for level, said in zip_longest(outcome.levels, reports)
        ],
        "kv_bytes": kv.bytes if isinstance(kv, KvAnswer) else None,
        "kv": kv.as_json() if isinstance(kv, KvAnswer) else {"sentence": kv},
        "exit_code": int(outcome.exit_code),
        "sentence": outcome.sentence or None,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def levels_table(levels: Sequence[Level]) -> str:
    """Return the table alone: a column a level, and how the last compares with the first."""
    return figures_table(list(map(_head, levels)), [level.summary for level in levels])


def _head(level: Level) -> str:
    return head(level.summary, level.concurrency)


def head(summary: Summary, concurrency: int | None) -> str:
    """Name a run by its load: its streams, or its rate and the most streams it may have had."""
    streams = "varied" if concurrency is None else str(concurrency)
    return f"batch {streams}" if summary.rate is None else f"{summary.rate:g}/s, cap {streams}"


def figures_table(heads: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Return a column of figures under each head, and the ratio of the last to the first."""
    compared = len(summaries) > 1
    lines = [["", *heads, *(["last : first"] if compared else [])]]
    lines += [
        [row.label, *row.cells, *([_ratio(row.values)] if compared else [])]
        for row in _rows(summaries)
    ]
    return aligned(lines)


def by_level(summary: Summary) -> list[Summary]:
    """Return a summary for each concurrency of a run whose slider moved, else the run's own."""
    names = [field.name for field in fields(LoadFigures)]
    levels = ({name: getattr(level, name) for name in names} for level in summary.levels)
    whole = {"engine_ttft_mean_s": None, "engine_itl_mean_s": None}  # known of all together alone
    return [replace(summary, **whole, **level) for level in levels] or [summary]


def _rows(summaries: Sequence[Summary]) -> Iterator[_Row]:
    gap = "chunk gap" if any(s.itl_is_chunk_gap for s in summaries) else "ITL"
    yield from _figure_rows("TTFT", [s.ttft for s in summaries])
    yield from _engine_rows(summaries)
    yield from _figure_rows(gap, [s.itl for s in summaries])
    yield from _figure_rows("TPOT", [s.tpot for s in summaries])
    if any(s.rate is not None for s in summaries):
        yield from _figure_rows("E2E", [s.e2e for s in summaries])
        yield from _figure_rows("from plan", [s.from_plan for s in summaries])
    yield _row("output tokens/s", [s.output_tokens_per_s for s in summaries], number)
    yield _row("requests measured", [s.completed for s in summaries], count)
    yield _row("requests failed", [s.failed for s in summaries], count)
    if any(s.cancelled for s in summaries):
        yield _row("requests cancelled", [s.cancelled for s in summaries], count)


def _engine_rows(summaries: Sequence[Summary]) -> Iterator[_Row]:
    """Yield what the engine itself says, where it says it: its share of each TTFT, its means."""
    split = [s.ttft_split for s in summaries]
    told = {
        "TTFT in queue, mean, ms": [part.queue_s for part in split],
        "TTFT in prefill, mean, ms": [part.prefill_s for part in split],
        "TTFT, the rest, mean, ms": [part.rest_s for part in split],
        "engine's TTFT mean, ms": [s.engine_ttft_mean_s for s in summaries],
        "engine's ITL mean, ms": [s.engine_itl_mean_s for s in summaries],
    }
    for label, seconds in told.items():
        if any(value is not None for value in seconds):
            yield _row(label, [milliseconds(value) for value in seconds], number)


def _figure_rows(name: str, figures: Sequence[Figures]) -> Iterator[_Row]:
    means = [milliseconds(f.mean) for f in figures]
    yield _Row(f"{name} mean, ms", tuple(map(number, means)), tuple(means))
    for which in _PERCENTILES:
        found: list[Percentile | None] = [getattr(f, which) for f in figures]
        cells = tuple(map(percentile, found))
        yield _Row(f"{name} {which}, ms", cells, tuple(p.value if p else None for p in found))
    yield _Row(f"{name} n", tuple(count(f.n) for f in figures))


def _row(label: str, values: Sequence[float | None], write: Callable[[float | None], str]) -> _Row:
    return _Row(label, tuple(map(write, values)), tuple(values) if write is number else ())


def percentile(found: Percentile | None) -> str:
    """Write a percentile in ms, marked where it is rough."""
    if found is None:
        return NOTHING
    mark = ROUGH if found.confidence is Confidence.ROUGH else ""
    return mark + number(milliseconds(found.value))


def milliseconds(seconds: float | None) -> float | None:
    """Return seconds in ms."""
    return None if seconds is None else seconds * 1e3


def number(value: float | None) -> str:
    """Write a number with three to four digits that mean something."""
    if value is None or math.isnan(value):
        return NOTHING
    decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(decimals, 3)}f}"


def count(value: float | None) -> str:
    """Write a whole number."""
    return NOTHING if value is None else f"{value:,.0f}"


def _ratio(values: Sequence[float | None]) -> str:
    if not values or values[0] is None or values[-1] is None or not values[0]:
        return ""
    return f"× {values[-1] / values[0]:.2f}"


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Align columns: the first `left` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "   ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _headline(outcome: Outcome) -> str:
    engine = outcome.engine
    parts = [part for part in (engine.version, engine.device) if part]
    served_by = f" on {', '.join(parts)}" if parts else ""
    return f"{engine.checkpoint or engine.served_model or 'No model was up'}{served_by}"


def _remarks(levels: Sequence[Level]) -> Iterator[str]:
    """Say what the figures do not: marks used, failures by reason, doubts."""
    lines = [*legend(levels_table(levels)), *(line for level in levels for line in _doubts(level))]
    if lines:
        yield "\n".join(lines)


def legend(shown: str) -> Iterator[str]:
    """Say what the marks in a table mean, those that it has."""
    if ROUGH in shown:
        yield f"{ROUGH} rough: fewer than 10 samples lie beyond this percentile."
    if NOTHING in shown:
        yield f"{NOTHING} not measured, or too few samples for this percentile."


def _doubts(level: Level) -> Iterator[str]:
    name = f"{_head(level).capitalize()}:"
    for reason, times in level.summary.failures.items():
        if reason not in level.view.sentence:  # the run's own sentence says it once
            yield f"{name} {times} failed: {reason}"
    if level.view.sentence:
        yield f"{name} {level.view.sentence}"
    if not level.complete:
        asked = level.summary.requests if level.asked is None else level.asked
        yield f"{name} {level.summary.completed} of {asked} requests were measured."
    yield from (f"{name} {mark}" for mark in level.summary.marks)


def _kv_words(outcome: Outcome, kv: KvAnswer | str) -> str:
    if isinstance(kv, str):
        return f"KV cache: {kv}"
    lines = [
        f"KV cache of one sequence of {kv.tokens:,} tokens, {kv.dtype}: {kv.gib:.4f} GiB",
        f"  {kv.formula}",
        *(f"  {assumption}" for assumption in kv.assumptions),
    ]
    room = outcome.engine.figures.get("kv_tokens")
    if room:
        lines.append(f"  The engine's own figure: room for {room:,.0f} tokens.")
    return "\n".join(lines)


def _folders(levels: Sequence[Level]) -> str:
    return "\n".join(f"log of {_head(level)}: {level.folder}" for level in levels)


def _level_json(level: Level, said: ToolReport | None) -> dict[str, Any]:
    summary = level.summary
    return {
        "concurrency": level.concurrency,
        "rate": summary.rate,
        "requests": level.asked,
        "completed": summary.completed,
        "failed": summary.failed,
        "cancelled": summary.cancelled,
        "failures": summary.failures,
        "state": str(level.view.state),
        "ended_by": level.ended_by,
        "ttft_s": figures_json(summary.ttft),
        "itl_s": figures_json(summary.itl),
        "itl_is_chunk_gap": summary.itl_is_chunk_gap,
        "tpot_s": figures_json(summary.tpot),
        "e2e_s": figures_json(summary.e2e),
        "from_plan_s": figures_json(summary.from_plan),
        "output_tokens_per_s": summary.output_tokens_per_s,
        "ttft_split": asdict(summary.ttft_split),
        "connect_mean_s": summary.connect_mean_s,
        "engine_ttft_mean_s": summary.engine_ttft_mean_s,
        "engine_itl_mean_s": summary.engine_itl_mean_s,
        "marks": list(summary.marks),
        "run_folder": str(level.folder),
        **as_key(said),
    }


def as_key(said: ToolReport | None) -> dict[str, Any]:
    """Return a tool's report under the key `as`; no key where none was asked for."""
    return {"as": report_json(said)} if said else {}
