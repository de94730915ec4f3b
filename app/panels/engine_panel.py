"""The engine: what to start, how it stands, and what it said when it failed."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.panels.forms import (
    add_pair,
    add_row,
    button,
    card,
    choice,
    fill,
    grid,
    real_box,
    say,
    sentence_label,
    shrink,
    whole_box,
)
from app.window.enabling import Enabled
from app.window.theme import mono_font
from engine_launcher.problems import Offer, Problem
from engine_launcher.settings import DTYPES, EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView

_KINDS = (
    ("vLLM", "vllm"),
    ("transformers (generate loop)", "transformers"),
    ("attached: a URL", "attached"),
)
_EAGER = (("auto", None), ("on", True), ("off", False))
_TONES = {
    EngineState.READY: "good",
    EngineState.FAILED: "bad",
    EngineState.UNRESPONSIVE: "warning",
    EngineState.STARTING: "warning",
    EngineState.STOPPING: "warning",
    EngineState.STOPPED: "off",
}


class EnginePanel(QWidget):
    """Shows an `EngineView`, gives `EngineSettings`."""

    start_asked = Signal(EngineSettings)
    stop_asked = Signal()
    model_changed = Signal(str)

    def __init__(self, checkpoints: Sequence[Path], default_model: Path) -> None:
        super().__init__()
        self._make_fields(checkpoints, default_model)
        self._make_actions()
        self._lay_out()
        self._connect()
        self._offer: Offer | None = None
        self._on_kind_changed()

    def settings(self) -> EngineSettings:
        """Return what the form says."""
        return EngineSettings(
            kind=self.kind.currentData(),
            model=self.chosen_model(),
            max_model_len=self.max_model_len.value(),
            tensor_parallel=self.tensor_parallel.value(),
            dtype=self.dtype.currentData(),
            port=self.port.value(),
            kv_cache_gib=self.kv_space.value(),
            eager=self.eager.currentData(),
            extra_arguments=self.extra_arguments.text(),
            served_name="" if self.kind.currentData() == "attached" else "tiny-lm",
            url=self.url.text().strip(),
        )

    def chosen_model(self) -> str:
        """Return the path or id; the checkpoints that are offered are shown by name alone."""
        typed = self.model.currentText().strip()
        return self._offered.get(typed, typed)

    def show_view(self, view: EngineView) -> None:
        """Show how the engine stands."""
        self.progress.setVisible(is_busy(view))
        say(self.status, _status_line(view))
        say(self.notes, "\n".join(view.notes))
        self.command_line.setText(view.command_line)
        self.command_line.setCursorPosition(0)
        self.command_line.setVisible(bool(view.command_line))
        self.copy.setVisible(bool(view.command_line))
        if view.sentence:
            self.show_problems((Problem("", view.sentence, view.offers),))
        elif is_busy(view) or view.state is EngineState.READY:
            self.show_problems(())

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """Say what is wrong, and offer what would do."""
        say(self.error, " ".join(problem.sentence for problem in problems))
        offers = (offer for problem in problems for offer in problem.offers)
        self._offer = next((offer for offer in offers if offer.setting in self._setters()), None)
        self.offer.setVisible(self._offer is not None)
        if self._offer is not None:
            self.offer.setText(self._offer.label)

    def apply_enabled(self, state: Enabled) -> None:
        """Take over what can be pressed."""
        for field in self._fields:
            field.setEnabled(state.engine_form)
        self.browse.setEnabled(state.engine_form)
        self.offer.setEnabled(state.engine_form)
        self.start.setEnabled(state.start_engine)
        self.stop.setEnabled(state.stop_engine)

    def _make_fields(self, checkpoints: Sequence[Path], default_model: Path) -> None:
        self.kind = choice(
            _KINDS, "Which engine: vLLM, the Hugging Face generate loop, or a server at a URL."
        )
        self.model = QComboBox()
        self.model.setEditable(True)
        self.model.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.model.setToolTip("Path of a checkpoint's folder, or a Hugging Face id (owner/name).")
        shrink(self.model)
        self._offered = {path.name: str(path) for path in (*checkpoints, default_model)}
        self.model.addItems([path.name for path in checkpoints])
        self.model.setCurrentText(default_model.name)
        self.model.lineEdit().setCursorPosition(0)
        self.url = QLineEdit()
        self.url.setPlaceholderText("http://127.0.0.1:8000")
        self.url.setToolTip("Any OpenAI-compatible server; the lab starts and stops nothing there.")
        self.max_model_len = whole_box(
            1, 10_000_000, 2048, "Longest sequence, prompt and reply together, in tokens."
        )
        self.tensor_parallel = whole_box(
            1, 64, 1, "Tensor-parallel size in ranks; it must divide the attention heads."
        )
        self.dtype = choice(
            [(name, name) for name in DTYPES], "Number format of the weights and activations."
        )
        self.port = whole_box(1, 65535, 8000, "TCP port on 127.0.0.1 where the engine listens.")
        self.port.setMinimumWidth(64)
        self.kv_space = real_box(
            0.1, 4096, 2, "Memory for the KV cache in GiB (2^30 bytes); CPU engines only.", " GiB"
        )
        self.kv_space.setMinimumWidth(76)
        self.eager = choice(
            _EAGER, "Skip compilation: quick to start, slower to run; auto is on for a CPU."
        )
        self.extra_arguments = QLineEdit()
        self.extra_arguments.setPlaceholderText("none")
        self.extra_arguments.setToolTip(
            "Further arguments for the engine, such as --max-num-seqs 64, split as a shell does."
        )

    def _make_actions(self) -> None:
        self.browse = QToolButton()
        self.browse.setText("…")
        self.browse.setToolTip("Choose a checkpoint's folder.")
        self.browse.setAccessibleName("Browse for a checkpoint")
        self.start = button("Start", "Start the engine, or attach to the URL (Ctrl+E).", "primary")
        self.stop = button(
            "Stop engine", "Stop the engine and all of its processes (Ctrl+Shift+E).", "danger"
        )
        self.progress = QProgressBar()
        self.progress.setRange(0, 0)
        self.progress.setTextVisible(False)
        self.progress.setToolTip("The engine is starting or stopping.")
        self.progress.hide()
        self.status = sentence_label("off")
        self.notes = sentence_label("off")
        self.error = sentence_label("bad")
        self.offer = button("Use the offer", "Put this value into the form.")
        self.offer.hide()
        self.command_line = QLineEdit()
        self.command_line.setReadOnly(True)
        self.command_line.setFont(mono_font(8.5))
        self.command_line.setToolTip("The exact command line, for a shell.")
        self.command_line.setAccessibleName("Command line of the engine")
        self.command_line.hide()
        self.copy = button("Copy", "Copy the command line (Ctrl+Shift+C).")
        self.copy.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.copy.hide()

    def _lay_out(self) -> None:
        frame, layout = card()
        form = grid()
        self._labels: dict[QWidget, QLabel] = {}
        self._model_row = _side_by_side(self.model, self.browse)
        self._model_row.setToolTip(self.model.toolTip())
        for row in (
            (("Engine", self.kind),),
            (("&Model", self._model_row),),
            (("URL", self.url),),
            (("Context", self.max_model_len), ("TP", self.tensor_parallel)),
            (("Dtype", self.dtype), ("Port", self.port)),
            (("KV space", self.kv_space), ("Eager", self.eager)),
            (("Flags", self.extra_arguments),),
        ):
            labels = add_pair(form, *row) if len(row) > 1 else [add_row(form, *row[0])]
            self._labels |= {field: name for (_, field), name in zip(row, labels, strict=True)}
        self._labels[self._model_row].setBuddy(self.model)
        self.setTabOrder(self.model, self.browse)
        self.model.setAccessibleName("Model")
        layout.addLayout(form)
        layout.addWidget(_side_by_side(self.start, self.stop))
        for widget in (self.progress, self.status, self.error, self.offer, self.notes):
            layout.addWidget(widget)
        layout.addWidget(_side_by_side(self.command_line, self.copy))
        layout.addStretch(1)
        fill(self, frame)
        self._fields = (
            self.kind,
            self.model,
            self.url,
            self.max_model_len,
            self.tensor_parallel,
            self.dtype,
            self.port,
            self.kv_space,
            self.eager,
            self.extra_arguments,
        )

    def _connect(self) -> None:
        self.kind.currentIndexChanged.connect(self._on_kind_changed)
        self.model.currentTextChanged.connect(self._on_model_changed)
        self.model.activated.connect(self._on_model_picked)
        self.browse.clicked.connect(self._on_browse_clicked)
        self.start.clicked.connect(self._on_start_clicked)
        self.stop.clicked.connect(self.stop_asked)
        self.offer.clicked.connect(self._on_offer_clicked)
        self.copy.clicked.connect(self.copy_command_line)

    def copy_command_line(self) -> None:
        """Put the command line on the clipboard."""
        QGuiApplication.clipboard().setText(self.command_line.text())

    def _on_kind_changed(self) -> None:
        kind = self.kind.currentData()
        shown = _SHOWN[kind]
        named = {
            "model": self._model_row,
            "url": self.url,
            "max_model_len": self.max_model_len,
            "tensor_parallel": self.tensor_parallel,
            "dtype": self.dtype,
            "port": self.port,
            "kv_space": self.kv_space,
            "eager": self.eager,
            "extra_arguments": self.extra_arguments,
        }
        for name, field in named.items():
            field.setVisible(name in shown)
            self._labels[field].setVisible(name in shown)
        self.start.setText("Attach" if kind == "attached" else "Start")

    def _on_model_picked(self) -> None:
        self.model.lineEdit().setCursorPosition(0)  # the beginning of a long name says more

    def _on_model_changed(self) -> None:
        self.model_changed.emit(self.chosen_model())

    def _on_start_clicked(self) -> None:
        self.start_asked.emit(self.settings())

    def _on_browse_clicked(self) -> None:
        here = self.chosen_model()
        folder = QFileDialog.getExistingDirectory(self, "Choose a checkpoint's folder", here)
        if folder:
            self.model.setCurrentText(folder)
            self._on_model_picked()

    def _on_offer_clicked(self) -> None:
        if self._offer is not None:
            self._setters()[self._offer.setting](self._offer.value)
        self.show_problems(())

    def _setters(self) -> dict[str, Callable[..., object]]:
        return {
            "port": self.port.setValue,
            "tensor_parallel": self.tensor_parallel.setValue,
            "max_model_len": self.max_model_len.setValue,
            "kv_cache_gib": self.kv_space.setValue,
            "dtype": self.dtype.setCurrentText,
        }


_SHOWN = {
    "vllm": {
        "model", "max_model_len", "tensor_parallel", "dtype", "port", "kv_space", "eager",
        "extra_arguments",
    },
    "transformers": {"model", "dtype", "port", "extra_arguments"},
    "attached": {"url"},
}  # fmt: skip


def is_connecting(view: EngineView) -> bool:
    """Return whether an attached server has yet to answer: the state stays at rest meanwhile."""
    return view.phase == "connecting" and view.state in {EngineState.STOPPED, EngineState.FAILED}


def is_busy(view: EngineView) -> bool:
    """Return whether the engine is on its way up or down."""
    return view.state in {EngineState.STARTING, EngineState.STOPPING} or is_connecting(view)


def _status_line(view: EngineView) -> str:
    """Return state, phase and seconds in words."""
    if view.state is EngineState.STARTING or is_connecting(view):
        return f"{view.phase or 'starting'} · {view.elapsed_s:.0f} s"
    if view.state is EngineState.READY:
        after = f" after {view.elapsed_s:.0f} s" if view.elapsed_s else ""
        where = f"\n{view.base_url}" if view.settings.kind == "attached" else ""
        return f"ready{after}{where}"
    return str(view.state)


def tone_of(state: EngineState) -> str:
    """Return the tone in which a state is written."""
    return _TONES[state]


def _side_by_side(*widgets: QWidget) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget)
    return row
