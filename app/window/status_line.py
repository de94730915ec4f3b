"""The line at the bottom: engine, run, where the log goes, and the lab's own lag."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QStatusBar

from app.panels.forms import muted

_TIPS = {
    "engine": "State of the engine.",
    "run": "State of the run.",
    "folder": "Where the log of this run lies.",
    "damage": "Lines of this run's log that could not be read.",
    "lag": "The measurement's own lag in this run: how long bytes had waited when the load worker "
    "read them, in ms; 99 % of the requests had less. Over 5 ms the run is marked.",
    "window": "The longest delay of a screen update and the longest update of the last three "
    "seconds, in ms. The measurement is another process and does not wait for the window.",
}


class StatusLine(QStatusBar):
    """Setters only."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = {name: muted() for name in _TIPS}
        for name, label in self.labels.items():
            label.setToolTip(_TIPS[name])
        folder = self.labels["folder"]
        folder.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        folder.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.addWidget(self.labels["engine"])
        self.addWidget(self.labels["run"])
        self.addWidget(folder, 1)
        self.addPermanentWidget(self.labels["damage"])
        self.addPermanentWidget(self.labels["lag"])
        self.addPermanentWidget(self.labels["window"])

    def say(self, name: str, text: str) -> None:
        """Set one part of the line."""
        label = self.labels[name]
        if label.text() != text:
            label.setText(text)
