"""The one timer: polls engine, run and run folder, hears what the person wants, and closes."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.charts.live_run import LiveRun
from app.panels.engine_panel import is_connecting
from app.panels.export_dialog import ExportOrder
from app.places import Places
from app.session import RunRefusedError, RunSession, plan_for
from app.window.enabling import Enabled, Situation, enabled
from app.window.errands import Errands
from app.window.lag import Lag
from app.window.parts import Parts
from app.window.presenter import DEFAULT_SPAN_S, Presenter
from app.window.subject import subject_of_record, subject_of_run
from engine_launcher import engines
from engine_launcher.engine import Engine
from engine_launcher.log_tail import LogTail
from engine_launcher.problems import Problem, Refusal
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements.plan import Load
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.export import export
from measurements.run_folder.reader import read_record
from measurements.run_folder.tail import RunTail
from measurements.states import RunState

TICK_MS = 33  # at most 30 times a second
# So many bytes of a file are read and parsed in about 2 ms.
_BYTES_A_POLL = 256 * 1024
_READ_BUDGET_S = 0.012  # a tick, while a past run is being read
_RUN_CLOSE_S = 3.0
_ENGINE_CLOSE_S = 3.0
_AT_REST = frozenset({EngineState.STOPPED, EngineState.FAILED})


class Controller(QObject):
    """Holds the engine, the run under way and the run on the screen."""

    closed = Signal()  # engine and run are down: the window may go
    exported = Signal(str, bool)  # a sentence, and whether it was written
    changed = Signal(Enabled)
    span_changed = Signal(object)  # seconds that the charts show, None for the whole run

    def __init__(self, places: Places, parts: Parts, errands: Errands) -> None:
        super().__init__()
        self._places = places
        self._parts = parts
        self._errands = errands
        self.presenter = Presenter(parts)
        self.engine = Engine(places.engines)
        self.session: RunSession | None = None
        self.run = LiveRun()
        self.folder: Path | None = None  # of the run on the screen
        self._run_state: RunState | None = None
        self._load: Load | None = None
        self._tail: RunTail | None = None
        self._starting_engine = self._starting_run = False
        self._stop_engine_wanted = self._stop_run_wanted = False  # while one is being started
        self._log: LogTail | None = None
        self._streams_wanted: int | None = None
        self._closing_since: float | None = None
        self._enabled: Enabled | None = None
        self._half = 0
        self._lag = Lag()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._connect()

    def start(self) -> None:
        """Begin to tick."""
        self._timer.start()
        self._on_tick()

    @property
    def closing(self) -> bool:
        """Whether the window is on its way out."""
        return self._closing_since is not None

    # What the person wants.

    def start_engine(self, settings: EngineSettings) -> None:
        """Start an engine, or attach to one."""
        if self._starting_engine:
            return
        self._parts.engine.show_problems(())
        begin = self.engine.attach if settings.kind == "attached" else self.engine.start
        own = self._places.engine_python
        settings = replace(settings, python=own if own.is_file() else None)
        self._starting_engine, self._stop_engine_wanted = True, False
        self._errands.run(_bound(begin, settings), self._on_engine_begun)

    def stop_engine(self) -> None:
        """Stop the engine, and the run first if one goes on."""
        self.stop_run()
        if self._starting_engine:
            self._stop_engine_wanted = True
        else:
            self.engine.stop()

    def start_run(self) -> None:
        """Start a run with what the load panel says."""
        if self._starting_run or self.session is not None:
            return
        self._parts.load.show_error("")
        view = self.engine.view
        load = self._parts.load.load()
        sentence = no_room_sentence(view, load)
        if sentence:
            self._parts.load.show_error(sentence)
            return
        self._load = load
        self._streams_wanted = None
        self._starting_run, self._stop_run_wanted = True, False
        work = _starter(view, load, self._parts, self._places.runs)
        self._errands.run(work, self._on_run_begun)

    def stop_run(self) -> None:
        """Stop the run: what is in flight is cancelled and the log is finished."""
        self._stop_run_wanted = True
        if self.session is not None:
            self.session.stop()

    def want_streams(self, streams: int) -> None:
        """Note the wanted concurrency; the next tick sends it."""
        self._streams_wanted = streams

    def open_run(self, folder: Path) -> None:
        """Show a past run."""
        try:
            record, _ = read_record(folder)
        except RunFolderError as error:
            self._parts.load.show_error(str(error))
            return
        self._parts.load.show_error("")
        self._run_state = None
        self._load = None
        self._show_folder(folder, None)
        self._parts.header.show_subject(subject_of_record(folder, record))

    def export(self, order: ExportOrder) -> None:
        """Write a CSV aside, and say how it went."""
        work = _bound(export, order.runs, order.what, order.destination, order.dialect)
        self._errands.run(work, _Exported(self, order.destination).on_done)

    def close(self) -> None:
        """Bring everything down; `closed` comes when that is done."""
        if self._closing_since is None:
            self._closing_since = time.monotonic()
            self.stop_engine()

    def situation(self) -> Situation:
        """Return what decides what can be pressed."""
        view = self.engine.view
        run = self._run_state if self.session is not None else None
        return Situation(
            engine=EngineState.STARTING if self._starting_engine else view.state,
            connecting=is_connecting(view),
            run=RunState.IDLE if self._starting_run else run,
            closing=self.closing,
        )

    # The tick.

    def _on_tick(self) -> None:
        began = time.monotonic()
        self._errands.poll()
        self._poll_engine()
        self._poll_run()
        self._read_run(began)
        self._present()
        self._advance_closing()
        self._lag.note(began, time.monotonic(), TICK_MS / 1e3)

    def _poll_engine(self) -> None:
        if self._starting_engine:  # it is being worked on aside
            return
        view = self.engine.poll()
        self.presenter.show_engine(view)
        if self._log is not None:
            self._parts.log.append(self._log.poll())

    def _poll_run(self) -> None:
        if self.session is None:
            return
        if self._streams_wanted is not None:
            self.session.set_concurrency(self._streams_wanted)
        self._streams_wanted = None
        view = self.session.poll()
        self._run_state = view.state
        if view.over:
            self._parts.load.show_error(view.sentence)
            self.session = None

    def _read_run(self, began: float) -> None:
        """Read what came; all of a past run in as many ticks as it takes."""
        more = self._tail is not None
        while more and self._tail is not None:
            try:
                batch = self._tail.poll()
            except RunFolderError as error:
                self._parts.load.show_error(str(error))
                self._tail = None
                return
            self.run.feed(batch)
            more = batch.more and time.monotonic() - began < _READ_BUDGET_S

    def _present(self) -> None:
        presenter = self.presenter
        presenter.show_run_state(self._run_state, self.run, self._load)
        presenter.draw(self.run, self._half)
        self._half = 1 - self._half
        if self.closing:
            self._parts.status.say("run", "stopping run and engine…")
        presenter.show_damage(self.run)
        presenter.show_lag(self._lag)
        now = enabled(self.situation())
        presenter.show_enabled(now)
        if now != self._enabled:
            self._enabled = now
            self.changed.emit(now)

    def _advance_closing(self) -> None:
        if self._closing_since is None:
            return
        waited = time.monotonic() - self._closing_since
        if self._errands.busy and waited < _ENGINE_CLOSE_S:
            return
        if self.session is not None and waited > _RUN_CLOSE_S:
            self.session.close(1.0)
        engine_down = self.engine.view.state in _AT_REST
        if not engine_down and waited > _ENGINE_CLOSE_S:
            self.engine.close()
            engine_down = True
        if engine_down and self.session is None:
            self._timer.stop()
            self.engine.close()
            self._errands.close()
            self.closed.emit()

    # What comes back.

    def _on_engine_begun(self, future: Future[Any]) -> None:
        self._starting_engine = False
        error = future.exception()
        if isinstance(error, Refusal):
            self._parts.engine.show_problems(error.problems)
            return
        if error is not None:
            self._parts.engine.show_problems((Problem("", f"The engine did not start: {error}."),))
            return
        view = self.engine.view
        self._log = None if view.log_path is None else LogTail(view.log_path)
        self._parts.log.begin(view.log_path)
        if self._stop_engine_wanted:
            self.engine.stop()

    def _on_run_begun(self, future: Future[Any]) -> None:
        self._starting_run = False
        error = future.exception()
        if error is not None:
            known = isinstance(error, RunRefusedError)
            self._parts.load.show_error(str(error) if known else f"No run was started: {error}.")
            return
        self.session = future.result()
        self._run_state = RunState.IDLE
        self._show_folder(self.session.folder, DEFAULT_SPAN_S)
        self._parts.header.show_subject(subject_of_run(self.session.folder, self.engine.view))
        if self._stop_run_wanted:
            self.session.stop()

    def _show_folder(self, folder: Path, span_s: float | None) -> None:
        self.folder = folder
        self.run = LiveRun()
        self._tail = RunTail(folder, _BYTES_A_POLL)
        self.presenter.span_s = span_s
        self.span_changed.emit(span_s)
        self.presenter.begin()
        self.presenter.show_folder(folder)

    def _on_stream_selected(self) -> None:
        self.presenter.show_text(self.run)

    def _on_scope_chosen(self) -> None:
        self.presenter.begin()

    def _connect(self) -> None:
        self._timer.timeout.connect(self._on_tick)
        self._parts.engine.start_asked.connect(self.start_engine)
        self._parts.engine.stop_asked.connect(self.stop_engine)
        self._parts.engine.model_changed.connect(self._parts.kv.set_model)
        self._parts.load.run_asked.connect(self.start_run)
        self._parts.load.stop_asked.connect(self.stop_run)
        self._parts.load.concurrency_changed.connect(self.want_streams)
        self._parts.numbers.scope.currentIndexChanged.connect(self._on_scope_chosen)
        self._parts.streams.selected.connect(self._on_stream_selected)


def no_room_sentence(view: EngineView, load: Load) -> str:
    """Return why no reply of this length fits into the engine's context; empty where one may."""
    context = view.figures.get("max_model_len")
    if context is None or load.max_tokens < context:
        return ""
    return (
        f"Max tokens is {load.max_tokens:,}, and the engine's context of {context:,.0f} tokens has "
        f"to hold the prompt too: take less than {context:,.0f}."
    )


class _Exported:
    """Says how one export went."""

    def __init__(self, controller: Controller, destination: Path) -> None:
        self._controller = controller
        self._destination = destination

    def on_done(self, future: Future[Any]) -> None:
        """Take in a finished export."""
        error = future.exception()
        if error is None:
            rows = future.result()
            self._controller.exported.emit(f"{rows:,} rows written to {self._destination}.", True)
        else:
            known = isinstance(error, RunFolderError)
            sentence = str(error) if known else f"Nothing was written: {error}."
            self._controller.exported.emit(sentence, False)


def _bound(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    def bound() -> Any:
        return work(*arguments)

    return bound


def _starter(view: EngineView, load: Load, parts: Parts, runs: Path) -> Callable[[], RunSession]:
    prompts = parts.load.chosen_prompts()

    def begin() -> RunSession:
        plan = plan_for(view, load, prompts)
        return RunSession.start(plan, runs, engines.api_key(view.settings), view.log_path)

    return begin
