"""Medians of all runs as Markdown and as JSON, and what was to be reached."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.arrivals.cases import LATENESS_LIMIT_S, Case, Result
from benchmarks.arrivals.rounds import Tally
from benchmarks.arrivals.truth import median

Tallies = Mapping[Case, Tally]
_NOTHING = "\N{EN DASH}"
_LEAST_RATIO = 50.0
_MOST_CPU_S = 0.04
_LEAST_TOKENS_PER_S = 32_000.0
_LEGEND = (
    "Medians of the runs that count. A run in which the server itself was more than "
    f"{LATENESS_LIMIT_S * 1e3:g} ms late at p99 is thrown away and repeated. Errors are "
    "reported minus true: the mean is signed, p99 is of the magnitude."
)
# At a concurrency: most TTFT error, mean and p99, and most error of a gap at p99, in ms.
_MOST_ERRORS = {1: (0.2, 0.5, 0.5), 8: (0.2, 0.5, 0.5), 64: (0.2, 1, 1), 256: (0.5, 3, 3)}
_LEAST_HELD = {64: 0.99, 256: 0.97}

_FIGURES: dict[str, Callable[[Result], float]] = {
    "ttft_error_mean_s": lambda result: result.errors.ttft_mean,
    "ttft_error_p99_s": lambda result: result.errors.ttft_p99,
    "gap_error_p99_s": lambda result: result.errors.gap_p99,
    "in_flight": lambda result: result.offered.in_flight,
    "tokens_received_per_s": lambda result: result.received_per_s,
    "tokens_sent_per_s": lambda result: result.offered.tokens_per_s,
    "cpu_per_1000_tokens_s": lambda result: result.cpu_per_1000_tokens_s,
    "burst_share": lambda result: result.burst_share,
    "server_lateness_p99_s": lambda result: result.offered.lateness_p99_s,
}


@dataclass(frozen=True)
class Goal:
    """A number to reach, and what was reached."""

    what: str
    asked: str
    reached: float
    met: bool


def medians(tally: Tally) -> dict[str, float]:
    """Return the median of each figure over the good runs."""
    return {name: median(map(figure, tally.good)) for name, figure in _FIGURES.items()}


def as_json(tallies: Tallies, machine: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """Return everything: machine, medians, goals, and each good run."""
    return {
        "machine": dict(machine),
        "runs_asked": runs,
        "cases": [
            {
                **asdict(case),
                "medians": medians(tally),
                "thrown_away": tally.thrown_away,
                "failed": tally.failed,
                "runs": [asdict(result) for result in tally.good],
            }
            for case, tally in tallies.items()
        ],
        "goals": [asdict(goal) for goal in goals(tallies)],
    }


def as_markdown(tallies: Tallies, machine: Mapping[str, Any]) -> str:
    """Return the tables that a person reads."""
    parts = [
        _described(machine),
        "\n".join(_main_table(tallies)),
        _LEGEND,
        "\n".join(_ratio_table(tallies)),
        "\n".join(_goal_table(tallies)),
        "\n".join(_failures(tallies)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _described(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}; load average {machine['load_before']:.1f} before and "
        f"{machine['load_after']:.1f} after."
    )


def _table(header: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    for row in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(row)} |"


def _main_table(tallies: Tallies) -> Iterator[str]:
    header = [
        *("client", "streams", "gap, ms", "TTFT error mean, ms", "p99, ms", "gap error p99, ms"),
        *("in flight", "tokens/s received", "sent", "CPU s / 1,000 tokens", "server late p99, ms"),
        "runs (thrown away)",
    ]
    return _table(header, (_row(case, tally) for case, tally in tallies.items()))


def _row(case: Case, tally: Tally) -> list[str]:
    m = medians(tally)
    return [
        case.name,
        str(case.concurrency),
        f"{case.gap_ns / 1e6:g}",
        *(_ms(m[name]) for name in ("ttft_error_mean_s", "ttft_error_p99_s", "gap_error_p99_s")),
        _number(m["in_flight"] / case.concurrency, "{:.1%}"),
        _number(m["tokens_received_per_s"], "{:,.0f}"),
        _number(m["tokens_sent_per_s"], "{:,.0f}"),
        _number(m["cpu_per_1000_tokens_s"], "{:.3f}"),
        _ms(m["server_lateness_p99_s"]),
        f"{len(tally.good)} ({tally.thrown_away})",
    ]


def _ms(seconds: float) -> str:
    return _number(seconds * 1e3, "{:.3f}" if abs(seconds) < 0.01 else "{:,.1f}")  # noqa: PLR2004 - from 10 ms on one decimal is enough


def _number(value: float, form: str) -> str:
    return _NOTHING if value != value else form.format(value)  # noqa: PLR0124 - NaN differs from itself


def ratios(tallies: Tallies) -> Iterator[tuple[Case, Case, float, float]]:
    """Yield each case of vllm with the lab's at the same load: how much nearer the lab is.

    The two ratios are those of the mean and of the p99 of the TTFT error, by magnitude.
    """
    for other in (case for case in tallies if case.client == "vllm"):
        for case in (case for case in tallies if case.client == "lab"):
            if (case.concurrency, case.gap_ns) == (other.concurrency, other.gap_ns):
                ours, theirs = medians(tallies[case]), medians(tallies[other])
                names = ("ttft_error_mean_s", "ttft_error_p99_s")
                mean, p99 = (_times(theirs[name], ours[name]) for name in names)
                yield case, other, mean, p99


def _times(theirs: float, ours: float) -> float:
    return abs(theirs) / abs(ours) if ours else float("nan")


def _ratio_table(tallies: Tallies) -> Iterator[str]:
    header = ["nearer to the truth than vllm bench serve", "streams", "gap, ms", "mean", "p99"]
    rows = (
        [
            case.name,
            str(case.concurrency),
            f"{case.gap_ns / 1e6:g}",
            *(_number(ratio, "{:,.0f} times") for ratio in (mean, p99)),
        ]
        for case, _, mean, p99 in ratios(tallies)
    )
    found = list(_table(header, rows))
    yield from found if len(found) > 2 else ()  # noqa: PLR2004 - more than a header and its rule


def goals(tallies: Tallies) -> Iterator[Goal]:
    """Yield every number to reach for which there is a run."""
    for case, tally in tallies.items():
        if case.client == "lab" and tally.good:
            m = medians(tally)
            yield from _speed_goals(case, m) if case.fast else _case_goals(case, m)
    for case, _, mean, _ in ratios(tallies):
        if case.concurrency >= min(_LEAST_HELD) and not case.fast:
            what = f"{_load(case)}: nearer than vllm bench serve, times"
            yield Goal(what, f"≥ {_LEAST_RATIO:g}", mean, mean >= _LEAST_RATIO)


def _load(case: Case) -> str:
    return f"{case.concurrency} streams{', window open' if case.window else ''}"


def _case_goals(case: Case, m: Mapping[str, float]) -> Iterator[Goal]:
    names = ("ttft_error_mean_s", "ttft_error_p99_s", "gap_error_p99_s")
    words = ("TTFT error mean", "TTFT error p99", "gap error p99")
    for name, word, most in zip(names, words, _MOST_ERRORS[case.concurrency], strict=True):
        found_ms = abs(m[name]) * 1e3
        yield Goal(f"{_load(case)}: {word}, ms", f"≤ {most:g}", found_ms, found_ms <= most)
    held = m["in_flight"] / case.concurrency
    least = _LEAST_HELD.get(case.concurrency)
    if least is not None:
        yield Goal(f"{_load(case)}: concurrency held", f"≥ {least:g}", held, held >= least)
    if case.concurrency == 64:  # noqa: PLR2004 - CPU is judged there alone
        cpu_s = m["cpu_per_1000_tokens_s"]
        what = f"{_load(case)}: CPU s per 1,000 tokens"
        yield Goal(what, f"≤ {_MOST_CPU_S:g}", cpu_s, cpu_s <= _MOST_CPU_S)


def _speed_goals(case: Case, m: Mapping[str, float]) -> Iterator[Goal]:
    rate = m["tokens_received_per_s"]
    what = f"{_load(case)}, one token each millisecond: tokens/s received"
    yield Goal(what, f"≥ {_LEAST_TOKENS_PER_S:,.0f}", rate, rate >= _LEAST_TOKENS_PER_S)


def _goal_table(tallies: Tallies) -> Iterator[str]:
    rows = (
        [goal.what, goal.asked, _digits(goal.reached), "yes" if goal.met else "no"]
        for goal in goals(tallies)
    )
    return _table(["to reach", "asked", "reached", "met"], rows)


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits


def _failures(tallies: Tallies) -> Iterator[str]:
    for case, tally in tallies.items():
        for sentence in dict.fromkeys(tally.failed):
            yield f"{case.name} at {case.concurrency}: {sentence}"
