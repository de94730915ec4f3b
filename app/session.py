"""One load worker as the app sees it: started, told, polled and closed, and never waited for."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import measurements
from app.describe import describe_engine
from app.engine_log import LogExcerpt
from engine_launcher.view import EngineView
from measurements.plan import API_KEY_VARIABLE, MAX_CONCURRENCY, Load, Plan, Prompts, Target
from measurements.run_folder.columns import LOAD
from measurements.run_folder.create import create, write_plan
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.reader import read_record
from measurements.states import RunState

_STATE_COLUMN = LOAD.index("state")
# After end of file the worker cancels what is in flight and finishes its files.
CLOSE_LIMIT_S = 5.0


class RunRefusedError(Exception):
    """A run that did not start; its text is one sentence for the person who asked."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A snapshot of a run. `over` is true once the worker has ended and its files are complete."""

    state: RunState = RunState.IDLE
    over: bool = False
    exit_code: int | None = None  # of the worker; minus the signal's number if one killed it
    sentence: str = ""  # what went wrong; empty while all is well


class RunSession:
    """A run under way: the worker's process, its run folder and the commands to it."""

    def __init__(
        self, folder: Path, worker: subprocess.Popen[bytes], log: LogExcerpt | None = None
    ) -> None:
        self.folder = folder
        self._worker = worker
        self._log = log
        self._outbox = b""
        self._states = _StateTail(folder / "load.csv")
        self._view = RunView()

    @classmethod
    def start(
        cls, plan: Plan, runs_dir: Path, api_key: str = "", engine_log: Path | None = None
    ) -> Self:
        """Create the run folder and start its worker; raise `RunRefusedError` if either fails.

        The part of `engine_log` that is written meanwhile is copied into the folder at the end.
        """
        try:
            folder = _new_folder(plan, runs_dir)
            worker = _start_worker(folder, _worker_environment(os.environ, api_key))
        except RunFolderError as error:
            raise RunRefusedError(str(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunRefusedError(f"The load worker cannot be started: {reason}.") from error
        return cls(folder, worker, engine_log and LogExcerpt.begin(engine_log))

    def set_concurrency(self, streams: int) -> None:
        """Ask for so many streams from now on; without effect once the run is over."""
        value = min(max(int(streams), 1), MAX_CONCURRENCY)
        self._send({"command": "concurrency", "value": value})

    def stop(self) -> None:
        """Ask the run to end: what is in flight is cancelled and the files are finished."""
        self._send({"command": "stop"})

    def poll(self) -> RunView:
        """Return where the run stands, without waiting."""
        if self._view.over:
            return self._view
        self._flush()
        exit_code = self._worker.poll()
        if exit_code is None:
            self._view = RunView(state=self._states.poll())
        else:
            self._hang_up()
            self._view = _final_view(self.folder, exit_code)
            if self._log is not None:
                self._log.copy_to(self.folder)
        return self._view

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> RunView:
        """End the run: end of file to the worker, a bounded wait in seconds, then KILL."""
        self._flush()
        self._hang_up()
        try:
            self._worker.wait(limit_s)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()
        return self.poll()

    def _send(self, command: dict[str, Any]) -> None:
        self._outbox += json.dumps(command).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        """Write what the pipe takes now: neither a stalled worker nor a dead one stops the app."""
        pipe = self._worker.stdin
        if pipe is None or pipe.closed or not self._outbox:
            return
        try:
            written = pipe.write(self._outbox)
        except OSError:  # the worker is gone, and poll will say so
            written = len(self._outbox)
        self._outbox = self._outbox[written or 0 :]

    def _hang_up(self) -> None:
        if self._worker.stdin is not None:
            self._worker.stdin.close()


class _StateTail:
    """The newest state in a growing load.csv, from whole lines only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._state = RunState.IDLE

    def poll(self) -> RunState:
        whole, newline, _ = self._read_on().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        last = whole.rpartition(b"\n")[2].decode("utf-8", "replace").split(",")
        if len(last) == len(LOAD):
            self._state = _as_state(last[_STATE_COLUMN]) or self._state
        return self._state

    def _read_on(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                return file.read()
        except OSError:  # not there yet
            return b""


def plan_for(
    view: EngineView,
    load: Load,
    prompts: Prompts,
    *,
    keep_text: bool = True,
) -> Plan:
    """Return the plan of a run against an engine that is ready."""
    target = Target(
        base_url=view.base_url,
        served_model=view.served_model,
        api=view.api,
        usage="per_chunk" if view.per_chunk_usage else "final",
    )
    return Plan(
        target=target,
        load=load,
        prompts=prompts,
        checkpoint=view.checkpoint or view.served_model,
        keep_text=keep_text,
        engine=describe_engine(view),
    )


def _new_folder(plan: Plan, runs_dir: Path) -> Path:
    name = plan.checkpoint or plan.target.served_model
    folder = create(runs_dir, name, plan.load.concurrency)
    write_plan(folder, plan)
    return folder


def _worker_environment(inherited: Mapping[str, str], api_key: str) -> dict[str, str]:
    """Return the app's environment with the key and with the place of our own packages."""
    ours = str(Path(measurements.__file__).resolve().parents[1])
    paths = [ours, *filter(None, [inherited.get("PYTHONPATH", "")])]
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop(API_KEY_VARIABLE, None)
    return environment | ({API_KEY_VARIABLE: api_key} if api_key else {})


def _start_worker(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the worker in a session of its own: Ctrl-C in a terminal is for the app alone."""
    # -P: a folder named measurements where the person stands is not ours.
    command = [sys.executable, "-P", "-m", "measurements", str(folder)]
    with (folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
    if sys.platform != "win32" and worker.stdin is not None:
        os.set_blocking(worker.stdin.fileno(), False)
    return worker


def _final_view(folder: Path, exit_code: int) -> RunView:
    record = _record(folder)
    state = _as_state(record.get("state"))
    if state is None or not state.over:
        return RunView(
            state=RunState.FAILED,
            over=True,
            exit_code=exit_code,
            sentence=_unexpected_end(folder, exit_code),
        )
    return RunView(
        state=state,
        over=True,
        exit_code=exit_code,
        sentence=str(record.get("sentence") or ""),
    )


def _record(folder: Path) -> dict[str, Any]:
    try:
        return read_record(folder)[0]
    except RunFolderError:  # somebody took the folder away
        return {}


def _unexpected_end(folder: Path, exit_code: int) -> str:
    how = f"was killed by {_signal_name(-exit_code)}" if exit_code < 0 else f"ended ({exit_code})"
    return (
        f"The load worker {how} before the run was finished; what it had measured is kept in "
        f"{folder}, and its last words are in worker.log there."
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _as_state(text: object) -> RunState | None:
    try:
        return RunState(str(text))
    except ValueError:
        return None
