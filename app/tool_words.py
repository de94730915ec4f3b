"""Another tool's words for the same arrivals, beside this lab's own (`docs/other-tools.md`)."""

from collections.abc import Sequence
from pathlib import Path

from app.report import NOTHING, aligned, count, milliseconds, number, percentile
from measurements.other_tools.reported import Quantity, ToolReport
from measurements.other_tools.tools import report
from measurements.run_folder.reader import read
from measurements.statistics import Figures, figures
from measurements.summary import Summary

_PERCENTILES = ("p50", "p90", "p99")
_WORDS = {
    "ttft": "TTFT",
    "ttft_answer": "TTFT to answer",
    "itl": "ITL",
    "chunk_gap": "chunk gap",
    "tpot": "TPOT",
    "e2e": "E2E",
}
_TOTALS = ["output tokens/s", "requests measured", "requests failed"]
_NOT_MEASURED = figures([])
_NOT_SAID = Quantity(n=0)


def read_reports(folders: Sequence[Path], tool: str | None) -> list[ToolReport]:
    """Return what `tool` would report of each run; nothing where no tool is asked for."""
    return [report(read(folder), tool) for folder in folders] if tool else []


def beside(
    heads: Sequence[str], summaries: Sequence[Summary], reports: Sequence[ToolReport]
) -> str:
    """Return a table with our column and the tool's under each head; empty without a report."""
    if not reports:
        return ""
    words = [word for word in _WORDS if any(getattr(r, word) is not None for r in reports)]
    columns = [["", *(label for word in words for label in _labels(_WORDS[word])), *_TOTALS]]
    for head, summary, said in zip(heads, summaries, reports, strict=True):
        columns += [[head, *_ours(summary, words)], ["as the tool", *_theirs(said, words)]]
    title = f"The same arrivals as {reports[0].tool} would report them:"
    return f"{title}\n{aligned(list(zip(*columns, strict=True)))}"


def _labels(word: str) -> list[str]:
    return [f"{word} mean, ms", *(f"{word} {which}, ms" for which in _PERCENTILES), f"{word} n"]


def _ours(summary: Summary, words: Sequence[str]) -> list[str]:
    cells = []
    for found in (_own(summary, word) for word in words):
        cells.append(number(milliseconds(found.mean)))
        cells += [percentile(getattr(found, which)) for which in _PERCENTILES]
        cells.append(count(found.n))
    return [*cells, *_totals(summary)]


def _own(summary: Summary, word: str) -> Figures:
    """Return our figures for a word; our gaps are ITLs or chunk gaps, never both."""
    if word in {"itl", "chunk_gap"}:
        fitting = summary.itl_is_chunk_gap == (word == "chunk_gap")
        return summary.itl if fitting else _NOT_MEASURED
    found: Figures = getattr(summary, word)
    return found


def _theirs(said: ToolReport, words: Sequence[str]) -> list[str]:
    cells = []
    for word in words:
        found: Quantity | None = getattr(said, word)
        values = found or _NOT_SAID
        cells += [number(milliseconds(getattr(values, q))) for q in ("mean", *_PERCENTILES)]
        cells.append(count(found.n) if found else NOTHING)
    return [*cells, *_totals(said)]


def _totals(figures: Summary | ToolReport) -> list[str]:
    return [
        number(figures.output_tokens_per_s),
        count(figures.completed),
        count(figures.failed),
    ]
