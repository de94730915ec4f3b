"""The table of latencies, the token rate and the failures by reason."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.charts.tally import Numbers
from app.panels.forms import card, choice, fill, say, sentence_label
from app.panels.wording import count, doubts, milliseconds, percentile_text, percentile_tip, rate
from app.window.theme import text_font
from measurements.statistics import Figures

_NARROW = 42  # pixels
_COLUMNS = ("ms", "n", "mean", "p50", "p90", "p99")
NEWEST, ALL = "newest", "all"
_ROWS = {
    "ttft": ("TTFT", "Time to first token: send to the first generated text, in ms."),
    "itl": ("ITL", "Inter-token latency: the gap between tokens of one stream, in ms."),
    "tpot": ("TPOT", "Time per output token after the first, one figure a request, in ms."),
    "e2e": ("E2E", "End to end: send to the last generated token, in ms."),
}


class NumbersPanel(QWidget):
    """Shows `Numbers`."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = choice(
            [("newest level", NEWEST), ("all levels together", ALL)],
            "The concurrency was moved in this run: whether these numbers, and those at the top, "
            "are of the requests sent at the newest one, or of all. `latency-lab show` has a "
            "column for each.",
        )
        self.scope.setAccessibleName("Which requests the numbers are of")
        self.scope.hide()
        self.table = _table()
        self.rate = sentence_label("")
        self.rate.setToolTip(
            "Output tokens that arrived while the target concurrency was held, per second of that "
            "time; warm-up, ramp and drain are left out."
        )
        self.failures = sentence_label("bad")
        self.failures.setToolTip("Requests that failed, by reason; they enter no latency figure.")
        self.doubts = sentence_label("warning")
        self.doubts.setToolTip("Why these figures may be wrong: the load worker watches itself.")
        frame, layout = card()
        for widget in (self.scope, self.table, self.rate, self.failures, self.doubts):
            layout.addWidget(widget)
        layout.addStretch(1)
        fill(self, frame)
        self.show_numbers(Numbers())

    def wants_all(self) -> bool:
        """Return whether the numbers of all levels together are asked for."""
        return self.scope.currentData() == ALL

    def show_level(self, streams: int | None) -> None:
        """Offer the choice of levels; None: the run has one, and nothing is to be chosen."""
        self.scope.setVisible(streams is not None)
        if streams is not None:
            self.scope.setItemText(0, f"newest level: {streams} streams")

    def show_numbers(self, numbers: Numbers) -> None:
        """Show the numbers of a run."""
        for row, name in enumerate(_ROWS):
            self._show_row(row, getattr(numbers, name))
        self.table.item(1, 0).setText("gap" if numbers.itl_is_chunk_gap else "ITL")
        unit = "tokens/s" if numbers.counts.tokens_known else "chunks/s"
        say(self.rate, f"{rate(numbers.output_tokens_per_s)} output {unit}")
        reasons = (f"{reason}: {times}" for reason, times in numbers.failures.items())
        say(self.failures, "\n".join(reasons))
        say(self.doubts, "\n".join(doubts(numbers.burst_share, numbers.client_lag_p99_s)))

    def _show_row(self, row: int, figures: Figures) -> None:
        found = {name: getattr(figures, name) for name in ("p50", "p90", "p99")}
        texts = [
            count(figures.n),
            milliseconds(figures.mean),
            *map(percentile_text, found.values()),
        ]
        for column, text in enumerate(texts, start=1):
            self.table.item(row, column).setText(text)
        for column, (name, percentile) in enumerate(found.items(), start=3):
            self.table.item(row, column).setToolTip(percentile_tip(name, percentile, figures))


def _table() -> QTableWidget:
    table = QTableWidget(len(_ROWS), len(_COLUMNS))
    table.setHorizontalHeaderLabels(list(_COLUMNS))
    table.setAccessibleName("Latencies in milliseconds")
    table.setToolTip("Latencies in ms of completed requests, warm-up left out.")
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(24)
    table.setShowGrid(False)
    table.setFont(text_font(9.0))
    table.setFrameShape(QTableWidget.Shape.NoFrame)
    table.setAlternatingRowColors(True)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
    table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setTabKeyNavigation(False)
    header = table.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    for column in (0, 1):  # a name and a count need less room than figures
        header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(column, _NARROW)
    header.setMinimumSectionSize(30)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    for row, (name, tip) in enumerate(_ROWS.values()):
        for column in range(len(_COLUMNS)):
            item = QTableWidgetItem(name if column == 0 else "")
            item.setToolTip(tip)
            side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
            item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
            table.setItem(row, column, item)
    table.setFixedHeight(24 * len(_ROWS) + 28)
    return table
