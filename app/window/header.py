"""The line at the top: the engine's state, what runs, and the figures that matter most."""

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.panels.engine_panel import tone_of
from app.panels.forms import muted, set_plain_tip, set_tone
from app.panels.wording import NOTHING
from app.window.theme import big_font, text_font
from engine_launcher.states import EngineState


@dataclass(frozen=True)
class HeaderFigure:
    """A figure: its name, its unit and what it means."""

    key: str
    name: str
    unit: str
    tip: str
    widest: str  # room is kept for this, so that figures do not jump


_SCOPE = "of the whole run, or of the newest level, as Numbers says"
FIGURES = (
    HeaderFigure(
        "rate",
        "throughput",
        "tok/s",
        "Output tokens/s: over the last two seconds of a run that goes on; while the target was "
        "held, once it has ended.",
        "9,999 tok/s",
    ),
    HeaderFigure(
        "ttft_p50", "TTFT p50", "ms", f"Median time to first token, {_SCOPE}.", "9,999 ms"
    ),
    HeaderFigure("ttft_p90", "TTFT p90", "ms", f"90th percentile of TTFT, {_SCOPE}.", "9,999 ms"),
    HeaderFigure("itl_p50", "ITL p50", "ms", f"Median inter-token latency, {_SCOPE}.", "99.9 ms"),
    HeaderFigure("itl_p99", "ITL p99", "ms", f"99th percentile of ITL, {_SCOPE}.", "99.9 ms"),
    HeaderFigure(
        "streams", "in flight / target", "", "Streams in flight, and streams asked for.", "99 / 99"
    ),
    HeaderFigure("kv", "KV cache", "%", "Share of the engine's KV cache in use.", "99.9 %"),
)


class Header(QWidget):
    """Setters only."""

    def __init__(self) -> None:
        super().__init__()
        self.dot = QLabel("●")
        self.state = QLabel()
        self.state.setFont(text_font(10.5, bold=True))
        self.engine = _one_line()
        self.subject = _one_line()
        self.figures = {figure.key: QLabel(NOTHING) for figure in FIGURES}
        self._lay_out()
        self.show_engine(EngineState.STOPPED)

    def show_engine(self, state: EngineState, subject: str = "") -> None:
        """Show the engine's state as a word and as a colour, and what it serves."""
        self.state.setText(f"engine {state}")
        self.engine.setText(subject)
        set_plain_tip(self.engine, subject)
        for label in (self.dot, self.state):
            set_tone(label, tone_of(state))

    def show_subject(self, text: str) -> None:
        """Say which run the figures and charts are about."""
        self.subject.setText(text)
        set_plain_tip(self.subject, text)

    def show_figure(self, key: str, text: str) -> None:
        """Show one figure without its unit; nothing measured is a dash."""
        unit = _UNITS[key]
        shown = f"{text} {unit}" if unit and text != NOTHING else text
        label = self.figures[key]
        if label.text() != shown:
            label.setText(shown)

    def _lay_out(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 14, 4)
        layout.setSpacing(7)
        layout.addLayout(self._two_lines(), 1)
        for figure in FIGURES:
            layout.addWidget(_column(figure, self.figures[figure.key]))

    def _two_lines(self) -> QVBoxLayout:
        """Put the engine as it is now above the run that is shown: it may be another's."""
        engine = QHBoxLayout()
        engine.setSpacing(7)
        engine.addWidget(self.dot)
        engine.addWidget(self.state)
        engine.addWidget(self.engine, 1)
        lines = QVBoxLayout()
        lines.setSpacing(1)
        lines.addLayout(engine)
        lines.addWidget(self.subject)
        return lines


_UNITS = {figure.key: figure.unit for figure in FIGURES}


def _one_line() -> QLabel:
    """Return a label that takes the room it gets."""
    label = muted()
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
    return label


def _column(figure: HeaderFigure, label: QLabel) -> QWidget:
    column = QWidget()
    column.setToolTip(figure.tip)
    layout = QVBoxLayout(column)
    layout.setContentsMargins(6, 0, 6, 0)
    layout.setSpacing(0)
    name = muted(figure.name)
    name.setFont(text_font(8.0))
    label.setFont(big_font())
    label.setMinimumWidth(label.fontMetrics().horizontalAdvance(figure.widest))
    label.setAccessibleName(figure.name)
    layout.addWidget(name)
    layout.addWidget(label)
    return column
