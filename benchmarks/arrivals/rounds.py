"""Runs of every case, one round after the other; what the server spoiled is done again."""

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.session import RunRefusedError
from benchmarks.arrivals import lab, vllm_bench
from benchmarks.arrivals.cases import Case, Result

Say = Callable[[str], None]


@dataclass
class Tally:
    """The runs of one case."""

    good: list[Result] = field(default_factory=list)
    thrown_away: int = 0  # the server was late
    failed: list[str] = field(default_factory=list)  # why there was no result

    def add(self, found: Result | str) -> None:
        """Take one run."""
        if isinstance(found, str):
            self.failed.append(found)
        elif found.counts:
            self.good.append(found)
        else:
            self.thrown_away += 1


def measure_all(
    cases: Sequence[Case], runs: int, program: Path, tokenizer: Path, say: Say
) -> dict[Case, Tally]:
    """Return `runs` good runs of each case, or what twice as many attempts brought."""
    tallies = {case: Tally() for case in cases}
    for attempt in range(2 * runs):
        wanted = [case for case, tally in tallies.items() if len(tally.good) < runs]
        for case, found in _round(wanted, program, tokenizer):
            tallies[case].add(found)
            say(f"round {attempt + 1}, {case.name} at {case.concurrency}: {_words(found)}")
        if not wanted:
            break
    return tallies


def _round(
    cases: Sequence[Case], program: Path, tokenizer: Path
) -> Iterable[tuple[Case, Result | str]]:
    for case in cases:
        if case.client == "lab":
            with tempfile.TemporaryDirectory() as folder:
                yield case, _lab(case, program, Path(folder))
    others = [case for case in cases if case.client == "vllm"]
    if others:
        with tempfile.TemporaryDirectory() as folder:
            yield from _vllm(others, program, Path(folder), tokenizer).items()


def _lab(case: Case, program: Path, folder: Path) -> Result | str:
    try:
        return lab.measure(case, program, folder)
    except (RunRefusedError, ValueError, OSError) as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        return f"The window ended with {error.returncode}: {error.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        return "The window did not end in time."


def _vllm(
    cases: Sequence[Case], program: Path, folder: Path, tokenizer: Path
) -> dict[Case, Result | str]:
    try:
        return dict(vllm_bench.measure(cases, program, folder, tokenizer))
    except (ValueError, OSError) as error:
        return dict.fromkeys(cases, str(error))
    except subprocess.TimeoutExpired:
        return dict.fromkeys(cases, "vllm bench serve did not end in time.")


def _words(found: Result | str) -> str:
    if isinstance(found, str):
        return found
    late_ms = found.offered.lateness_p99_s * 1e3
    if not found.counts:
        return f"thrown away, since the server was {late_ms:.2f} ms late at p99"
    return f"TTFT error {found.errors.ttft_mean * 1e3:.3f} ms"
