"""The command line as a person runs it: a process of its own, with a home of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 120.0


@dataclass(frozen=True)
class Lab:
    """A lab whose runs and engines lie in a folder of the test's own."""

    home: Path
    interpreter: tuple[str, ...] = (sys.executable,)
    variables: tuple[tuple[str, str], ...] = ()

    def run(self, *words: object, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with self.begin(*words) as process:
            try:
                out, err = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def begin(self, *words: object) -> subprocess.Popen[str]:
        """Start a command and return its process."""
        return subprocess.Popen(
            [*self.interpreter, "-m", "app", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"LATENCY_LAB_HOME": str(self.home)} | dict(self.variables),
        )


def assert_one_sentence(text: str) -> None:
    """One line, that ends as a sentence does, and no traceback."""
    assert text.count("\n") == 1, text
    assert text.rstrip("\n").endswith("."), text
