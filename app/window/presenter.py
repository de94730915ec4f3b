"""State to widgets: nothing here decides anything."""

import time
from pathlib import Path

from app.charts.axes import TimeWindow, follow
from app.charts.live_run import LiveRun
from app.charts.tally import Numbers
from app.panels.engine_panel import is_connecting
from app.panels.wording import NOTHING, percentile_text, rate, value_of
from app.window.enabling import Enabled
from app.window.lag import Lag
from app.window.parts import Parts
from app.window.subject import subject_of_engine
from engine_launcher.view import EngineView
from measurements.plan import Load
from measurements.states import RunState

DEFAULT_SPAN_S = 120.0
_NUMBERS_EVERY_S = 0.5
_STREAMS_EVERY_S = 0.15
_LAG_EVERY_S = 1.0


class Presenter:
    """Knows what was drawn last, so that only what changed is drawn again."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.numbers = Numbers()
        self._itl = self.numbers.itl  # of the whole run, as the histogram is
        self.span_s: float | None = DEFAULT_SPAN_S  # None: the whole run
        self._drawn = [-1, -1]  # version of the run in each pair of charts
        self._numbered = self._listed = -1
        self._due: dict[str, float] = {}
        self._engine: EngineView | None = None
        self._enabled: Enabled | None = None
        self._ended = True  # the run on the screen goes on no longer

    def begin(self) -> None:
        """Forget what was drawn: another run comes, or another look."""
        self.numbers = Numbers()
        self._itl = self.numbers.itl
        self._drawn = [-1, -1]
        self._numbered = self._listed = -1
        self._due.clear()

    def show_engine(self, view: EngineView) -> None:
        """Show the engine wherever it is shown."""
        if view == self._engine:
            return
        self._engine = view
        self.parts.engine.show_view(view)
        self.parts.header.show_engine(view.state, subject_of_engine(view))
        word = "connecting" if is_connecting(view) else str(view.state)
        self.parts.status.say("engine", f"engine {word}")

    def show_enabled(self, state: Enabled) -> None:
        """Show what can be pressed."""
        if state != self._enabled:
            self._enabled = state
            self.parts.engine.apply_enabled(state)
            self.parts.load.apply_enabled(state)

    def show_run_state(self, state: RunState | None, run: LiveRun, load: Load | None) -> None:
        """Show how far the run is."""
        self._note_end(ended=state is None or state.over)
        asked = load.requests if load else None
        counts = run.tally.counts()
        self.parts.load.show_run(state, counts, run.in_flight, asked)
        self.parts.status.say("run", "no run" if state is None else f"run {_words(state)}")
        _, target = run.picture.target_steps()
        known = target[target == target]  # noqa: PLR0124 - NaN differs from itself
        streams = f"{run.in_flight} / {known[-1]:.0f}" if len(known) else NOTHING
        self.parts.header.show_figure("streams", streams)

    def _note_end(self, *, ended: bool) -> None:
        """Show the figures once more when a run ends: its throughput is another one then."""
        if ended != self._ended:
            self._ended = ended
            self._numbered = -1

    def show_damage(self, run: LiveRun) -> None:
        """Say how much of the log could not be read."""
        words = f"{run.damaged:,} damaged lines were left out" if run.damaged else ""
        self.parts.status.say("damage", words)

    def show_folder(self, folder: Path | None) -> None:
        """Say where the log goes."""
        self.parts.status.say("folder", "" if folder is None else f"log: {folder}")

    def show_lag(self, lag: Lag) -> None:
        """Show what lag the measurement has, and what the window has, once a second."""
        if self._is_due("lag", _LAG_EVERY_S):
            window = f"window {lag.late_s * 1e3:.0f} ms late, {lag.busy_s * 1e3:.0f} ms a tick"
            self.parts.status.say("window", window)
            client_s = self.numbers.client_lag_p99_s
            words = "" if client_s is None else f"own lag {client_s * 1e3:.1f} ms at p99"
            self.parts.status.say("lag", words)

    def draw(self, run: LiveRun, half: int) -> None:
        """Draw one pair of charts, 0 or 1, and on the second one what is in words."""
        if self._drawn[half] != run.version:
            self._drawn[half] = run.version
            self._draw_charts(run, half)
        if half and self._numbered != run.version and self._is_due("numbers", _NUMBERS_EVERY_S):
            self._numbered = run.version
            self._show_numbers(run)
        if half and self._listed != run.version and self._is_due("streams", _STREAMS_EVERY_S):
            self._listed = run.version
            self.parts.streams.show_rows(run.recent.rows())
            self.show_text(run)

    def show_text(self, run: LiveRun) -> None:
        """Show the text of the selected request."""
        request_id = self.parts.streams.request_id()
        text = "" if request_id is None else run.recent.text(request_id)
        self.parts.streams.show_text(request_id, text)

    def _draw_charts(self, run: LiveRun, half: int) -> None:
        window: TimeWindow = follow(run.picture.now_s, self.span_s)
        if half == 0:
            self.parts.throughput.show_picture(run.picture, window)
            self.parts.ttft.show_picture(run.picture, window)
            return
        p50, p99 = value_of(self._itl.p50) * 1e3, value_of(self._itl.p99) * 1e3
        name = "Chunk gap" if self.numbers.itl_is_chunk_gap else "Inter-token latency"
        self.parts.itl_over_time.show_picture(run.picture, window, name)
        self.parts.itl_histogram.show_picture(run.picture, p50, p99, name)

    def _show_numbers(self, run: LiveRun) -> None:
        whole = run.tally.numbers()
        newest = run.levels.newest()
        self._itl = whole.itl
        self.parts.numbers.show_level(None if newest is None else newest[0])
        chosen = newest is not None and not self.parts.numbers.wants_all()
        self.numbers = newest[1].numbers() if newest and chosen else whole
        self._drawn[1] = -1  # its lines come from the numbers
        self.parts.numbers.show_numbers(self.numbers)
        show = self.parts.header.show_figure
        recent = run.picture.recent_tokens_per_s()
        show("rate", rate(self.numbers.output_tokens_per_s if self._ended else recent))
        show("ttft_p50", percentile_text(self.numbers.ttft.p50))
        show("ttft_p90", percentile_text(self.numbers.ttft.p90))
        show("itl_p50", percentile_text(self.numbers.itl.p50))
        show("itl_p99", percentile_text(self.numbers.itl.p99))
        usage = run.kv_usage
        show("kv", NOTHING if usage is None else f"{usage * 100:.1f}")

    def _is_due(self, name: str, every_s: float) -> bool:
        now = time.monotonic()
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every_s
        return True


def _words(state: RunState) -> str:
    return str(state).replace("_", " ")
