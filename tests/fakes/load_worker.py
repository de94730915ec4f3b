"""The load worker started as a process, and what it has written so far."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0


class Worker:
    """A started worker and its folder."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, *command, str(folder)], cwd=ROOT, stdin=subprocess.PIPE
        )

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the whole lines of a file, as far as it has any."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_bytes())
        return found

    def until(self, met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not met():
            assert self.process.poll() is None, (self.folder / "worker.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def worker(
    tmp_path: Path, url: str, command: Sequence[str] = ("-m", "measurements"), **plan: Any
) -> Iterator[Worker]:
    folder = tmp_path / "run"
    folder.mkdir()
    plan.setdefault("load", {})
    plan = {"target": {"base_url": url, "served_model": "tiny-lm"}, **plan}
    (folder / "plan.json").write_text(json.dumps(plan))
    started = Worker(folder, list(command))
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()
