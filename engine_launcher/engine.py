"""One engine from Start to Stop: the only place that writes its state. Everything is polled."""

import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from engine_launcher import (
    engines,
    explanation,
    log_reading,
    model_folder,
    preflight,
    records,
    supervisor,
    sweep,
)
from engine_launcher.child import Child
from engine_launcher.engines import Launch
from engine_launcher.log_tail import LogTail
from engine_launcher.problems import Problem, Refusal
from engine_launcher.records import Record
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState, step
from engine_launcher.view import EngineView
from engine_launcher.watcher import Order

HURRY_S = 2.5  # of grace when the app closes or dies
ATTACH_LIMIT_S = 10.0  # until a server that does not answer is given up
_CLOSE_LIMIT_S = HURRY_S + supervisor.KILL_LIMIT_S + 2.0
_SWEEP_LIMIT_S = 5.0
_LOOK_AGAIN_S = 0.02
_GIB = 2**30

_S = EngineState
_RUNNING = frozenset({_S.STARTING, _S.READY, _S.UNRESPONSIVE})
_AT_REST = frozenset({_S.STOPPED, _S.FAILED})


class Engine:
    """One engine at a time: started under a supervisor, or attached to at a URL.

    `poll` moves everything forward and takes a few ms; call it about 30 times a second.
    """

    def __init__(self, engines_dir: Path) -> None:
        self._engines_dir = engines_dir
        self._view = EngineView(state=_S.STOPPED, settings=EngineSettings())
        self._supervisor: Child | None = None
        self._watcher: Child | None = None
        self._log: LogTail | None = None
        self._reading = log_reading.Reading()
        self._record: Record | None = None
        self._began = 0.0  # monotonic seconds; 0 where nothing is on its way
        self._exit_status: int | None = None
        self._failure = ""  # why the engine is being stopped, if not by hand
        self._waiting_for = ""  # why it is not ready, in the watcher's words
        self._swept_since: float | None = None

    @property
    def view(self) -> EngineView:
        """The snapshot that the last poll left."""
        return self._view

    def start(self, settings: EngineSettings) -> None:
        """Start an engine; Refusal where something would fail or is still running."""
        self._refuse_unless_at_rest()
        left = sweep.sweep(self._engines_dir)
        self._refuse(_outlived([process.pid for process in left]))
        self._refuse(preflight.check(settings))
        engine_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        launch = engines.plan_launch(settings, engine_id)
        folder = self._new_folder(engine_id)
        self._forget()
        self._set(
            state=step(self._view.state, _S.STARTING),
            settings=settings,
            engine_id=engine_id,
            phase="starting the interpreter",
            notes=launch.notes,
            command_line=engines.shell_line(launch),
            base_url=engines.base_url(settings),
            checkpoint=model_folder.own_name(settings.model),
            version=launch.version,
            device=launch.device,
            log_path=folder / "engine.log",
        )
        self._log = LogTail(folder / "engine.log")
        self._start_supervisor(launch, folder)
        self._start_watcher(settings, launch.served_model, folder)

    def attach(self, settings: EngineSettings) -> None:
        """Connect to a server that somebody else runs; Refusal where the URL is none.

        The state stays at rest until the server has answered; a server that does not answer in
        time is given up with a sentence.
        """
        settings = replace(settings, kind="attached")
        self._refuse_unless_at_rest()
        self._refuse(preflight.check(settings))
        engine_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        folder = self._new_folder(engine_id)
        self._forget()
        self._set(
            settings=settings,
            engine_id=engine_id,
            phase="connecting",
            base_url=engines.base_url(settings),
        )
        self._start_watcher(settings, settings.served_name, folder)

    def stop(self) -> None:
        """Begin to stop; an engine at rest, or already stopping, stays as it is."""
        if self._view.state in _RUNNING:
            self._begin_stop("stopping")
        elif self._view.state in _AT_REST:
            self._end_watcher()
            self._began = 0.0
            self._set(phase="")

    def poll(self) -> EngineView:
        """Take in what has happened since the last poll, and return the snapshot."""
        self._read_log()
        self._take(self._supervisor, self._on_supervisor)
        self._take(self._watcher, self._on_watcher)
        self._notice_lost_supervisor()
        self._notice_lost_watcher()
        if self._began:
            self._set(elapsed_s=time.monotonic() - self._began)
            self._notice_limits()
        return self._view

    def close(self) -> None:
        """Stop what runs and wait, for a bounded time, until nothing is left."""
        self.stop()
        if self._supervisor:
            self._supervisor.close_input()
        deadline = time.monotonic() + _CLOSE_LIMIT_S
        while self._view.state is _S.STOPPING and time.monotonic() < deadline:
            self.poll()
            time.sleep(_LOOK_AGAIN_S)
        if self._supervisor and self._record:  # it did not come to an end in time
            self._supervisor.kill()
            sweep.kill(sweep.members(self._record))
            self._finish([process.pid for process in sweep.members(self._record)])

    # What the children say.

    def _take(self, child: Child | None, on_message: Callable[[dict[str, Any]], None]) -> None:
        for message in child.poll() if child else ():
            on_message(message)

    def _on_supervisor(self, message: dict[str, Any]) -> None:
        match message["event"]:
            case "started":
                self._set(pid=message["pid"])
                self._note(engine_pid=message["pid"], engine_start=message["start_time"])
            case "refused":
                self._failure = f"The engine could not be started: {message['reason']}."
                self._begin_stop("stopping")
                self._finish([])
            case "exited":
                self._on_exit(message["status"])
            case "stopped":
                self._finish(message["survivors"])

    def _on_exit(self, status: int) -> None:
        self._exit_status = status
        if self._view.state in _RUNNING:
            self._failure = self._explain(status)
            self._begin_stop("cleaning up")

    def _on_watcher(self, message: dict[str, Any]) -> None:
        state = self._view.state
        match message["event"]:
            case "ready" if state not in {_S.READY, _S.UNRESPONSIVE, _S.STOPPING}:
                self._on_ready(message)
            case "waiting":
                self._waiting_for = message["why"]
            case "unresponsive" if state is _S.READY:
                self._set(state=step(state, _S.UNRESPONSIVE), sentence=message["why"])
            case "answering" if state is _S.UNRESPONSIVE:
                self._set(state=step(state, _S.READY), sentence="")
            case "failed" if state in _RUNNING:
                self._on_engine_dead(message["why"])

    def _on_ready(self, message: dict[str, Any]) -> None:
        view, settings = self._view, self._view.settings
        version = view.version or message["version"]
        root = message["root"] or message["served_model"]
        length = message["max_model_len"]
        self._began = 0.0
        self._set(
            state=step(view.state, _S.READY),
            phase="",
            sentence="",
            notes=(*view.notes, *message["notes"]),
            served_model=message["served_model"],
            checkpoint=view.checkpoint or root.rstrip("/").rsplit("/", 1)[-1],
            version=version,
            api=message["api"],
            per_chunk_usage=message["per_chunk_usage"],
            figures={**view.figures, **({"max_model_len": float(length)} if length else {})},
            settings=settings,
        )

    def _on_engine_dead(self, why: str) -> None:
        if self._supervisor:
            problem = self._explanation()
            self._failure = problem.sentence if problem else why
            self._begin_stop("stopping")
        elif self._view.state is _S.READY:
            self._set(state=step(self._view.state, _S.UNRESPONSIVE), sentence=why)

    # What nobody says.

    def _read_log(self) -> None:
        if self._log is None:
            return
        lines = self._log.poll()
        self._reading = log_reading.read_on(self._reading, [*lines, self._log.current])
        figures = {**self._view.figures, **self._reading.figures}
        phase = self._reading.phase if self._view.state is _S.STARTING else ""
        self._set(figures=figures, phase=phase or self._view.phase)

    def _notice_lost_supervisor(self) -> None:
        """Kill the engine ourselves where its supervisor has gone without a word."""
        if self._supervisor is None or not self._supervisor.ended or self._record is None:
            return
        if self._swept_since is None:
            self._swept_since = time.monotonic()
            self._failure = self._failure or "The engine's supervisor was killed, so is the engine."
            if self._view.state in _RUNNING:
                self._begin_stop("cleaning up")
        alive = sweep.members(self._record)
        sweep.kill(alive)
        if not alive or time.monotonic() - self._swept_since > _SWEEP_LIMIT_S:
            self._finish([process.pid for process in alive])

    def _notice_lost_watcher(self) -> None:
        if self._watcher is None or not self._watcher.ended:
            return
        self._end_watcher()
        self._failure = "The lab's own watcher ended: see watcher.log beside the engine's log."
        if self._supervisor:
            self._begin_stop("stopping")
        elif self._view.state in _RUNNING:
            self._set(state=step(self._view.state, _S.FAILED), sentence=self._failure)
        else:
            self._give_up()

    def _notice_limits(self) -> None:
        settings = self._view.settings
        if settings.kind == "attached":
            if self._view.elapsed_s > min(ATTACH_LIMIT_S, settings.start_limit_s):
                self._give_up()
        elif self._view.elapsed_s > settings.start_limit_s and self._view.state is _S.STARTING:
            self._failure = (
                f"The engine was not ready after {settings.start_limit_s:g} s (last phase: "
                f"{self._view.phase}): raise the start limit or choose a smaller model. "
                f"{self._waiting_for}"
            )
            self._begin_stop("stopping")

    # Ends.

    def _give_up(self) -> None:
        self._end_watcher()
        self._began = 0.0
        why = self._failure or self._waiting_for or f"{self._view.base_url} does not answer."
        self._set(phase="", sentence=why)

    def _begin_stop(self, phase: str) -> None:
        self._end_watcher()
        self._began = 0.0
        self._set(state=step(self._view.state, _S.STOPPING), phase=phase, sentence=self._failure)
        if self._supervisor:
            self._supervisor.send("stop")
        else:
            self._finish([])

    def _finish(self, survivors: list[int]) -> None:
        """Come to rest: the engine is gone, except for what outlived KILL."""
        if self._supervisor:
            self._supervisor.release()
            self._supervisor = None
        self._read_log()
        self._note(ended_utc=datetime.now(UTC).isoformat() if not survivors else "")
        sentences = [self._failure, *(p.sentence for p in _outlived(survivors))]
        sentence = " ".join(text for text in sentences if text)
        self._set(
            state=step(self._view.state, _S.FAILED if sentence else _S.STOPPED),
            phase="",
            sentence=sentence,
            survivors=tuple(survivors),
            notes=self._view.notes + self._log_note(),
        )

    def _log_note(self) -> tuple[str, ...]:
        return (f"The whole log: {self._view.log_path}",) if self._failure else ()

    def _explain(self, status: int) -> str:
        self._read_log()
        # A signal comes from outside: an error that the log holds is an older one.
        problem = self._explanation() if status >= 0 else None
        return problem.sentence if problem else explanation.explain_status(status)

    def _explanation(self) -> Problem | None:
        lines = self._log.view() if self._log else ()
        return explanation.explain(lines, self._view.settings.model)

    # Beginnings.

    def _start_supervisor(self, launch: Launch, folder: Path) -> None:
        command = [sys.executable, "-I", "-S", supervisor.__file__]
        self._supervisor = Child(command, folder / "supervisor.log")
        settings = self._view.settings
        self._record = Record(
            engine_id=self._view.engine_id,
            boot_id=records.boot_id(),
            started_utc=datetime.now(UTC).isoformat(),
            command_line=self._view.command_line,
            app_pid=os.getpid(),
            app_start=records.start_time_of(os.getpid()),
            supervisor_pid=self._supervisor.pid,
            supervisor_start=records.start_time_of(self._supervisor.pid),
        )
        self._note()
        self._supervisor.order(
            {
                "command": launch.command,
                "environment": dict(launch.environment),
                "log": str(folder / "engine.log"),
                "grace_s": settings.stop_grace_s,
                "hurry_s": min(HURRY_S, settings.stop_grace_s),
            }
        )

    def _start_watcher(self, settings: EngineSettings, served_model: str, folder: Path) -> None:
        command = [sys.executable, "-m", "engine_launcher.watcher"]
        self._watcher = Child(command, folder / "watcher.log")
        order = Order(
            kind=settings.kind,
            base_url=self._view.base_url,
            served_model=served_model,
            api_key=engines.api_key(settings),
            engines_dir="" if settings.kind == "attached" else str(self._engines_dir.absolute()),
        )
        self._watcher.order(asdict(order))
        self._began = time.monotonic()

    def _new_folder(self, engine_id: str) -> Path:
        folder = self._engines_dir / engine_id
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            sentence = f"{folder} cannot be written: {error.strerror}."
            raise Refusal((Problem("engines_dir", sentence),)) from error
        return folder

    def _refuse_unless_at_rest(self) -> None:
        if self._view.state not in _AT_REST:
            raise Refusal((Problem("", f"The engine is {self._view.state}: stop it first."),))
        self._refuse(_outlived(self._view.survivors))
        self._end_watcher()

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        if problems:
            raise Refusal(problems)

    def _forget(self) -> None:
        """Start from a blank page; the state alone stays."""
        self._view = EngineView(state=self._view.state, settings=self._view.settings)
        self._log = None
        self._reading = log_reading.Reading()
        self._record = None
        self._exit_status = None
        self._failure = ""
        self._waiting_for = ""
        self._swept_since = None

    def _end_watcher(self) -> None:
        if self._watcher:
            self._watcher.kill()
            self._watcher = None

    def _note(self, **facts: Any) -> None:
        """Keep the record on disk in step."""
        if self._record:
            self._record = replace(self._record, **facts)
            # A full disk or a folder that is gone: what runs is stopped all the same.
            with suppress(OSError):
                records.write(self._engines_dir / self._record.engine_id, self._record)

    def _set(self, **changes: Any) -> None:
        self._view = replace(self._view, **changes)


def _outlived(pids: Sequence[int]) -> tuple[Problem, ...]:
    """Return what to say of those of an engine's processes that still live in spite of KILL."""
    living = [f"pid {pid} ({_memory_gib(pid):.1f} GiB)" for pid in pids if psutil.pid_exists(pid)]
    if not living:
        return ()
    sentence = f"Of the last engine, these outlived KILL: {', '.join(living)}; end them by hand."
    return (Problem("", sentence),)


def _memory_gib(pid: int) -> float:
    try:
        return float(psutil.Process(pid).memory_info().rss / _GIB)
    except psutil.Error:
        return 0.0
