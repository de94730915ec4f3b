"""The engine's log as it grows."""

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from app.panels.forms import card, set_plain_tip
from app.window.theme import mono_font

MOST_LINES = 5000
# The lab's own questions, one a second: the file keeps them, and here they would hide the rest.
_OWN_POLL = re.compile(r'"GET /(health|metrics) HTTP/[\d.]+" 200')


class LogPanel(QWidget):
    """Appends lines; stays where the person scrolled to, unless that is the end."""

    def __init__(self) -> None:
        super().__init__()
        self.view = QPlainTextEdit()
        self.view.setReadOnly(True)
        self.view.setMaximumBlockCount(MOST_LINES)
        self.view.setUndoRedoEnabled(False)
        self.view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.view.setFont(mono_font(8.5))
        self.view.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.view.setAccessibleName("Engine log")
        self.view.setPlaceholderText("The log of the engine shows here once it starts.")
        self.view.setToolTip(f"The last {MOST_LINES:,} lines of the engine's log.")
        frame, layout = card()
        layout.setContentsMargins(6, 6, 6, 6)
        layout.addWidget(self.view)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(4, 0, 4, 4)
        outer.addWidget(frame)

    def begin(self, path: Path | None) -> None:
        """Start with an empty view for another engine's log; an attached engine has none here."""
        self.view.clear()
        if path is None:
            self.view.setPlaceholderText("An attached server keeps its own log.")
        else:
            set_plain_tip(self.view, f"The last {MOST_LINES:,} lines of {path}.")

    def append(self, lines: Sequence[str]) -> None:
        """Add lines at the end."""
        lines = [line for line in lines if not _OWN_POLL.search(line)]
        if not lines:
            return
        bar = self.view.verticalScrollBar()
        held = bar.value()
        at_end = held >= bar.maximum() - 1
        self.view.appendPlainText("\n".join(lines[-MOST_LINES:]))
        bar.setValue(bar.maximum() if at_end else held)
