"""The load: how many streams, which prompts, how long; and how far the run is."""

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QProgressBar,
    QSlider,
    QSpinBox,
    QWidget,
)

from app.charts.tally import Counts
from app.panels.forms import (
    add_pair,
    add_row,
    button,
    card,
    choice,
    fill,
    grid,
    muted,
    real_box,
    say,
    sentence_label,
    whole_box,
)
from app.panels.slider_scale import LAST_POSITION, position_of, streams_at
from app.window.enabling import Enabled
from measurements.plan import MAX_CONCURRENCY, MAX_RATE, Load, Prompts
from measurements.prompt_sets import SHARED
from measurements.states import RunState

_PROMPTS = (
    ("short", "short"),
    ("mixed", "mixed"),
    ("long", "long"),
    ("shared prefix", SHARED),
    ("a file…", ""),
)
_CLOSED = "closed"
_LOOPS = (
    ("closed loop", _CLOSED),
    ("open loop, constant", "constant"),
    ("open loop, Poisson", "poisson"),
)
_STREAMS = "&Concurrency, streams"
_MOST_STREAMS = "&Concurrency, at most"
_DEFAULT = Load()


class LoadPanel(QWidget):
    """Gives a `Load` and `Prompts`; shows counts."""

    run_asked = Signal()
    stop_asked = Signal()
    concurrency_changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._form_enabled = True
        self._closed_streams: int | None = None  # of the closed loop, while an open one is chosen
        self._make_concurrency()
        self._make_fields()
        self._make_actions()
        self._lay_out()
        self._connect()

    def load(self) -> Load:
        """Return what the form says."""
        return Load(
            concurrency=self.concurrency.value(),
            rate=self.rate.value() if self._open_loop() else None,
            arrival="poisson" if self.loop.currentData() == "poisson" else "constant",
            duration_s=self.duration.value() or None,
            requests=self.requests.value() or None,
            warmup=self.warmup.value(),
            max_tokens=self.max_tokens.value(),
            temperature=self.temperature.value(),
            ignore_eos=self.ignore_eos.isChecked(),
        )

    def chosen_prompts(self) -> Prompts:
        """Return the prompt set."""
        source = self.prompts.currentData()
        return Prompts(source=source, unique_prefix=source != SHARED)

    def show_run(
        self, state: RunState | None, counts: Counts, in_flight: int, asked: int | None
    ) -> None:
        """Show how far a run is; `asked` is None for a run until stopped."""
        active = state is not None and not state.over
        self.progress.setVisible(active)
        total = asked or 0
        done = min(counts.completed + counts.failed, total)
        self.progress.setRange(0, total)
        self.progress.setValue(done)
        say(self.status, "" if state is None else _state_line(state, asked, done))
        say(self.counts, "" if state is None else counts_line(counts, in_flight))

    def show_error(self, sentence: str) -> None:
        """Say what is wrong with the run."""
        say(self.error, sentence)

    def apply_enabled(self, state: Enabled) -> None:
        """Take over what can be pressed."""
        for field in self._fields:
            field.setEnabled(state.load_form)
        self.rate.setEnabled(state.load_form and self._open_loop())
        self._form_enabled = state.load_form
        self.slider.setEnabled(state.concurrency)
        self.concurrency.setEnabled(state.concurrency)
        self.run.setEnabled(state.run)
        self.stop.setEnabled(state.stop_run)

    def _make_concurrency(self) -> None:
        tip = "Streams in flight at once, 1 to 256. Moving it during a run takes effect at once."
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, LAST_POSITION)
        self.slider.setPageStep(4)
        self.slider.setToolTip(tip)
        self.slider.setAccessibleName("Concurrency slider")
        self.concurrency = QSpinBox()
        self.concurrency.setRange(1, MAX_CONCURRENCY)
        self.concurrency.setValue(_DEFAULT.concurrency)
        self.concurrency.setToolTip(tip)
        self.concurrency.setKeyboardTracking(False)
        self.concurrency.setAccessibleName("Concurrency")
        self.concurrency.setMinimumWidth(70)

    def _make_fields(self) -> None:
        self.prompts = choice(
            _PROMPTS,
            "Which prompts are sent: a built-in set, or a text, JSON, JSONL or CSV file. Each gets "
            "a unique prefix, except those that share one on purpose.",
        )
        self.loop = choice(
            _LOOPS,
            "Closed loop: each stream sends its next request when its last one has ended. Open "
            "loop: requests are sent at a rate, whatever the server does.",
        )
        self.rate = real_box(
            0.01, MAX_RATE, 1.0, "Open loop: requests per second on average.", " /s"
        )
        self.rate.setEnabled(False)
        self.duration = whole_box(
            0, 1_000_000, 0, "Seconds after which no more is sent; at 0 there is no limit.", " s"
        )
        self.duration.setSpecialValueText("∞")
        self.max_tokens = whole_box(1, 100_000, _DEFAULT.max_tokens, "Longest reply, in tokens.")
        self.temperature = real_box(
            0,
            2,
            _DEFAULT.temperature,
            "Sampling temperature, no unit; 0 takes the likeliest token.",
        )
        self.requests = whole_box(
            0, 10_000_000, 0, "Counted requests to finish; at 0 the run goes on until stopped."
        )
        self.requests.setSpecialValueText("until stopped")
        self.warmup = whole_box(
            0, 10_000, _DEFAULT.warmup, "Requests sent first: logged, not counted."
        )
        self.ignore_eos = QCheckBox("full length")
        self.ignore_eos.setToolTip(
            "Ask the engine to ignore the end-of-sequence token, so that every reply has the "
            "longest length (vLLM)."
        )

    def _make_actions(self) -> None:
        self.run = button("Run", "Send prompts at this concurrency (Ctrl+R).", "primary")
        self.stop = button("Stop", "Cancel what is in flight and finish the log (Esc).", "danger")
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setToolTip("Counted requests that ended, of those asked for.")
        self.progress.hide()
        self.status = sentence_label("")
        self.counts = sentence_label("off")
        self.error = sentence_label("bad")

    def _lay_out(self) -> None:
        frame, layout = card()
        top = QHBoxLayout()
        self._streams_name = muted(_STREAMS)
        self._streams_name.setBuddy(self.slider)
        self._streams_name.setToolTip(self.slider.toolTip())
        top.addWidget(self._streams_name)
        top.addStretch(1)
        top.addWidget(self.concurrency)
        layout.addLayout(top)
        layout.addWidget(self.slider)
        self.ignore_eos.setAccessibleName("Replies of full length")
        form = grid()
        add_row(form, "Arrival", self.loop)
        add_pair(form, ("Rate", self.rate), ("For", self.duration))
        add_row(form, "Prompts", self.prompts)
        add_pair(form, ("Max tokens", self.max_tokens), ("Temp.", self.temperature))
        add_row(form, "Requests", self.requests)
        add_row(form, "Warm-up", self.warmup, self.ignore_eos)
        layout.addLayout(form)
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        buttons.addWidget(self.run)
        buttons.addWidget(self.stop)
        layout.addLayout(buttons)
        stand = QHBoxLayout()  # one line, so that the counts below are in view at 1280x800
        stand.setSpacing(6)
        stand.addWidget(self.progress, 1)
        stand.addWidget(self.status, 1)
        layout.addLayout(stand)
        for widget in (self.error, self.counts):
            layout.addWidget(widget)
        layout.addStretch(1)
        fill(self, frame)
        self.setTabOrder(self.slider, self.concurrency)
        self._fields: tuple[QWidget, ...] = (
            self.loop,
            self.prompts,
            self.max_tokens,
            self.temperature,
            self.requests,
            self.duration,
            self.warmup,
            self.ignore_eos,
        )

    def _connect(self) -> None:
        self.slider.valueChanged.connect(self._on_slider_moved)
        self.concurrency.valueChanged.connect(self._on_number_typed)
        self.loop.currentIndexChanged.connect(self._on_loop_changed)
        self.prompts.activated.connect(self._on_prompts_chosen)
        self.run.clicked.connect(self.run_asked)
        self.stop.clicked.connect(self.stop_asked)

    def _on_slider_moved(self, position: int) -> None:
        self.concurrency.setValue(streams_at(position))

    def _on_number_typed(self, streams: int) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(position_of(streams))
        self.concurrency_changed.emit(streams)

    def _open_loop(self) -> bool:
        return self.loop.currentData() != _CLOSED

    def _on_loop_changed(self) -> None:
        """Let an open loop begin without a cap that holds it back, and put the streams back after.

        Between its two kinds nothing changes.
        """
        opened = self._open_loop()
        if opened == (self._closed_streams is not None):
            return
        self.rate.setEnabled(opened and self._form_enabled)
        self._streams_name.setText(_MOST_STREAMS if opened else _STREAMS)
        streams = MAX_CONCURRENCY if self._closed_streams is None else self._closed_streams
        self._closed_streams = self.concurrency.value() if opened else None
        self.concurrency.setValue(streams)

    def _on_prompts_chosen(self, index: int) -> None:
        if index != len(_PROMPTS) - 1:
            return
        path, _ = QFileDialog.getOpenFileName(
            self, "Choose prompts", "", "Prompts (*.txt *.json *.jsonl *.csv);;All files (*)"
        )
        choose_prompt_file(self.prompts, path)


def choose_prompt_file(box: QComboBox, path: str) -> None:
    """Show a prompt file as the choice; go back to the first set where none was chosen."""
    last = len(_PROMPTS) - 1
    if not path:
        box.setCurrentIndex(0)
        return
    box.setItemData(last, path)
    box.setItemData(last, path, Qt.ItemDataRole.ToolTipRole)
    box.setItemText(last, Path(path).name)
    box.setCurrentIndex(last)


def counts_line(counts: Counts, in_flight: int) -> str:
    """Return the counts in words."""
    what = "tokens" if counts.tokens_known else "chunks"
    words = [
        f"{counts.sent} sent",
        f"{in_flight} in flight",
        f"{counts.completed} done",
        f"{counts.failed} failed",
        f"{counts.tokens:,.0f} {what}",
    ]
    if counts.cancelled:
        words.insert(4, f"{counts.cancelled} cancelled")
    if counts.warmup:
        failed = f", {counts.warmup_failed} failed" if counts.warmup_failed else ""
        words.append(f"{counts.warmup} warm-up{failed}")
    return " · ".join(words)


def _state_line(state: RunState, asked: int | None, done: int) -> str:
    words = str(state).replace("_", " ")
    return f"{words} · {done} of {asked} requests" if asked else words
