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


FIGURES = (
    HeaderFigure(
        "rate", "throughput", "tok/s", "Output tokens/s over the last two seconds.", "9,999 tok/s"
    ),
    HeaderFigure(
        "ttft_p50", "TTFT p50", "ms", "Median time to first token, whole run.", "9,999 ms"
    ),
    HeaderFigure("ttft_p90", "TTFT p90", "ms", "90th percentile of TTFT, whole run.", "9,999 ms"),
    HeaderFigure("itl_p50", "ITL p50", "ms", "Median inter-token latency, whole run.", "99.9 ms"),
    HeaderFigure("itl_p99", "ITL p99", "ms", "99th percentile of ITL, whole run.", "99.9 ms"),
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
        self.state = QLabel("stopped")
        self.state.setFont(text_font(10.5, bold=True))
        self.subject = muted()
        self.subject.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.subject.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        self.figures = {figure.key: QLabel(NOTHING) for figure in FIGURES}
        self._lay_out()
        self.show_engine(EngineState.STOPPED)

    def show_engine(self, state: EngineState) -> None:
        """Show the engine's state as a word and as a colour."""
        self.state.setText(str(state))
        for label in (self.dot, self.state):
            set_tone(label, tone_of(state))

    def show_subject(self, text: str) -> None:
        """Say which checkpoint the figures and charts are about."""
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
        layout.addWidget(self.dot)
        layout.addWidget(self.state)
        layout.addSpacing(8)
        layout.addWidget(self.subject, 1)
        for figure in FIGURES:
            layout.addWidget(_column(figure, self.figures[figure.key]))


_UNITS = {figure.key: figure.unit for figure in FIGURES}


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
