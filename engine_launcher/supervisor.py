"""Own one engine's processes: started by the app, and gone only when the engine is gone.

Standard library only, run as `python -I -S supervisor.py`. The first line on stdin is the order,
a JSON object with `command`, `environment`, `log`, `grace_s` and `hurry_s`; after that stdin is
the life line. The line "stop" means: TERM to the engine's group and to all descendants, `grace_s`
seconds, then KILL until nothing is left. End of file (the app closed or died) means the same with
at most `hurry_s`. Events go to stdout, a JSON line each: `started`, `refused`, `exited`, `stopped`.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

CRASH_GRACE_S = 2.0  # for what a crashed leader leaves: nobody is waiting for its last words
KILL_LIMIT_S = 5.0  # a process that outlives KILL for so long hangs in the kernel
KILL_REPEAT_S = 0.1


class Process(NamedTuple):
    """One process as /proc shows it. The start time (ticks since boot) tells reused pids apart."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    state: str

    @property
    def alive(self) -> bool:
        """Whether it still runs: a zombie does not."""
        return self.state not in "ZX"


def read_process(pid: int) -> Process | None:
    """Return the process `pid` as it is now, or None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            stat = file.read()
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets too: fields follow the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    parent, group, session = (int(field) for field in fields[1:4])
    return Process(pid, parent, group, session, int(fields[19]), fields[0].decode())


def process_table() -> list[Process]:
    """Return all processes that this one can see."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return [process for process in found if process is not None]


def descendants(ancestor: int, table: list[Process]) -> list[Process]:
    """Return the children of `ancestor`, their children and so on."""
    children: dict[int, list[Process]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(process.pid for process in below)
    return found


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(event: str, **facts: Any) -> None:
    line = json.dumps({"event": event, **facts}) + "\n"
    with suppress(OSError):  # the app may be gone: the engine must go all the same
        os.write(sys.stdout.fileno(), line.encode())


class LifeLine:
    """stdin: the order, then silence, "stop" or the end."""

    def __init__(self) -> None:
        self._buffer = b""
        self.ended = False

    def read(self) -> None:
        """Take what is there, without waiting for a whole line."""
        data = os.read(sys.stdin.fileno(), 65536)
        self._buffer += data
        self.ended = not data

    def lines(self) -> Iterator[bytes]:
        """Yield the whole lines that have come."""
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            yield line

    def order(self) -> dict[str, Any] | None:
        """Wait for the first line; None where the app ended before it sent one."""
        while not self.ended:
            for line in self.lines():
                order: dict[str, Any] = json.loads(line)
                return order
            self.read()
        return None


class Supervisor:
    """The one child, its descendants, and the two descriptors that wake the loop."""

    def __init__(self, order: dict[str, Any], life_line: LifeLine, wake: int) -> None:
        self._order = order
        self._life_line = life_line
        self._wake = wake
        self._engine: subprocess.Popen[bytes] | None = None  # kept: its end would wait for the pid
        self._leader = 0
        self._told_to_stop = False

    def start(self) -> bool:
        """Start the engine in a session of its own, its output going straight into the log."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            # A file never fills up as a pipe does, so nobody has to drain it.
            log = os.open(self._order["log"], flags, 0o644)
            self._engine = subprocess.Popen(
                self._order["command"],
                env=self._order["environment"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no threads here, no lock to inherit
            )
        except OSError as error:
            _say("refused", reason=f"{error.strerror}: {error.filename}")
            return False
        self._leader = self._engine.pid
        leader = read_process(self._leader)
        _say("started", pid=self._leader, start_time=leader.start_time if leader else 0)
        return True

    def watch(self) -> float:
        """Wait for a reason to end; return the seconds of grace that it leaves the engine."""
        while self._leader:
            if self._life_line.ended:
                return float(self._order["hurry_s"])
            if self._told_to_stop or b"stop" in self._life_line.lines():
                return float(self._order["grace_s"])
            self._wait(None)
            self._reap()
        return min(CRASH_GRACE_S, float(self._order["grace_s"]))

    def end(self, grace_s: float) -> list[int]:
        """TERM, grace, KILL; return the pids that live on in spite of it."""
        self._signal_all(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while self._reap() and time.monotonic() < deadline:
            self._wait(deadline - time.monotonic())
            if self._life_line.ended:
                deadline = min(deadline, time.monotonic() + float(self._order["hurry_s"]))
        deadline = time.monotonic() + KILL_LIMIT_S
        while self._reap() and time.monotonic() < deadline:
            self._signal_all(signal.SIGKILL)
            self._wait(KILL_REPEAT_S)
        return [process.pid for process in self._descendants()] if self._reap() else []

    def _wait(self, seconds: float | None) -> None:
        sources = [self._wake] if self._life_line.ended else [self._wake, sys.stdin.fileno()]
        ready, _, _ = select.select(
            sources, [], [], seconds if seconds is None else max(seconds, 0)
        )
        if self._wake in ready:
            signals = os.read(self._wake, 512)
            self._told_to_stop |= any(number != signal.SIGCHLD for number in signals)
        if sys.stdin.fileno() in ready:
            self._life_line.read()

    def _reap(self) -> bool:
        """Collect what has ended, orphans too; return whether a child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._leader:
                    self._leader = 0
                    _say("exited", status=os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            return False

    def _descendants(self) -> list[Process]:
        return [process for process in descendants(os.getpid(), process_table()) if process.alive]

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
        if self._leader:  # once more as a group, for what was born meanwhile
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, number)


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable when a child ends or somebody says TERM or HUP."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # Handlers, not SIG_IGN: an ignored signal would stay ignored in the engine.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def main() -> None:
    """Start the engine, wait for a reason to end, end it."""
    signal.signal(signal.SIGINT, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()
    life_line = LifeLine()
    order = life_line.order()
    if order is None:
        return
    supervisor = Supervisor(order, life_line, wake)
    if supervisor.start():
        survivors = supervisor.end(supervisor.watch())
        _say("stopped", survivors=survivors)


if __name__ == "__main__":
    main()
