"""The server with a known schedule: compiled, started, stopped, and its log read."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from benchmarks.arrivals.truth import Schedule, Served

SOURCE = Path(__file__).with_name("server.c")
_STOP_LIMIT_S = 30.0


class CannotBuildError(Exception):
    """The server cannot be built here; its text is one sentence."""


def build(folder: Path) -> Path:
    """Compile the server into `folder` and return the program."""
    if sys.platform != "linux":
        raise CannotBuildError("The benchmark's server is written for Linux.")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CannotBuildError(
            "The benchmark's server is a C program and there is no cc here: install gcc."
        )
    program = folder / "server"
    subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
    return program


@dataclass
class Server:
    """A server as a process: `with Server(program, log, schedule) as server: …`, then `served`."""

    program: Path
    log: Path
    schedule: Schedule
    port: int = 0
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        times_us = (self.schedule.ttft_ns // 1000, self.schedule.gap_ns // 1000)
        self._process = subprocess.Popen(
            [self.program, self.log, *map(str, times_us)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=_STOP_LIMIT_S)

    @property
    def root(self) -> str:
        """Return the URL without a path."""
        return f"http://127.0.0.1:{self.port}"

    def served(self) -> list[Served]:
        """Return every whole reply, once the server has been stopped."""
        return read_log(self.log)


def read_log(path: Path) -> list[Served]:
    """Return the replies of a server's log."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Served(row["id"], row["tag"], row["received_ns"], np.array(row["sent_ns"], dtype=np.int64))
        for row in rows
    ]
