"""How far the lab's arrival times are from the truth, in one command.

    .venv/bin/python -m benchmarks.arrivals [--runs 5] [--json FILE] [--without-vllm]

Needs a C compiler. `vllm bench serve` runs beside the lab where the engine's environment is built.
Five runs take about 10 minutes; keep the machine quiet meanwhile.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.arrivals import report, vllm_bench
from benchmarks.arrivals.cases import LAB_CASES, VLLM_CASES, Case
from benchmarks.arrivals.rounds import measure_all
from benchmarks.arrivals.server import CannotBuildError, build
from measurements import machine
from measurements.run_folder.writer import write_json

_TOKENIZER = Path(__file__).parents[2] / "checkpoints" / "tiny-lm"


def main() -> int:
    """Measure, print the tables, and write the JSON file if one is asked for."""
    options = _options()
    cases = _cases(with_vllm=not options.without_vllm)
    before = {"load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = build(Path(folder))
        except CannotBuildError as error:
            print(error, file=sys.stderr)
            return 2
        tallies = measure_all(cases, max(1, options.runs), program, _TOKENIZER, _say)
    described = {**_machine(), **before, "load_after": os.getloadavg()[0]}
    print(report.as_markdown(tallies, described), end="")
    if options.json is not None:
        write_json(options.json, report.as_json(tallies, described, options.runs))
    return 0 if all(goal.met for goal in report.goals(tallies)) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.arrivals", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of each case (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there too")
    parser.add_argument("--without-vllm", action="store_true", help="measure the lab alone")
    return parser.parse_args()


def _cases(*, with_vllm: bool) -> tuple[Case, ...]:
    if not with_vllm:
        return LAB_CASES
    if vllm_bench.python() is None or not _TOKENIZER.is_dir():
        _say("vllm bench serve is left out: it needs make engine and make models.")
        return LAB_CASES
    return (*LAB_CASES, *VLLM_CASES)


def _machine() -> dict[str, Any]:
    return {
        **machine.describe(),
        "packages": machine.packages(),
        "git_revision": machine.git_revision(),
    }


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        _say("Interrupted: there are no tables, since the runs were not all made.")
        sys.exit(130)
