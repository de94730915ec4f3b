"""The newest requests, and the text of the one that is selected."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHeaderView,
    QPlainTextEdit,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.charts.recent import StreamRow
from app.panels.forms import card
from app.panels.request_model import RequestModel
from app.window.theme import mono_font, text_font


class StreamPanel(QWidget):
    """Shows rows and the text of `request_id`; asks for texts with `selected`."""

    selected = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.model = RequestModel(self)
        self.table = _table(self.model)
        self.newest = QCheckBox("follow what streams")
        self.newest.setChecked(True)
        self.newest.setToolTip("Show a request until it has ended, then the newest that streams.")
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFont(text_font(9.5))
        self.text.setAccessibleName("Text of the selected request")
        self.text.setToolTip("The reply of the selected request, as it came.")
        self.text.setPlaceholderText("The streamed text of a request shows here.")
        self.text.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self._shown = ""
        self._followed: int | None = None
        self._shown_id: int | None = None
        self._lay_out()
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.table.clicked.connect(self._on_row_clicked)
        self.newest.toggled.connect(self._on_follow_toggled)

    def request_id(self) -> int | None:
        """Return the request whose text is wanted."""
        current = self.table.currentIndex()
        if self.newest.isChecked() or not current.isValid():
            self._followed = self.model.followed(self._followed)
            return self._followed
        row = self.model.at(current.row())
        return None if row is None else row.request_id

    def show_rows(self, rows: list[StreamRow]) -> None:
        """Show the newest requests, newest first."""
        self.model.show_rows(rows)

    def show_text(self, request_id: int | None, text: str) -> None:
        """Show a reply; only what is new of it is added."""
        if request_id == self._shown_id and text.startswith(self._shown):
            added = text[len(self._shown) :]
        else:
            self.text.clear()
            added = text
        self._shown_id, self._shown = request_id, text
        if added:
            cursor = self.text.textCursor()
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(added)

    def _lay_out(self) -> None:
        frame, layout = card()
        layout.setContentsMargins(6, 6, 6, 6)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.addWidget(self.table)
        split.addWidget(self.text)
        split.setSizes([150, 120])
        layout.addWidget(split, 1)
        layout.addWidget(self.newest)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(4, 0, 4, 0)
        outer.addWidget(frame)

    def _on_row_changed(self) -> None:
        self.selected.emit()

    def _on_row_clicked(self) -> None:
        self.newest.setChecked(False)
        self.selected.emit()

    def _on_follow_toggled(self) -> None:
        self.selected.emit()


def _table(model: RequestModel) -> QTableView:
    table = QTableView()
    table.setModel(model)
    table.setFont(mono_font(8.5))
    table.setAccessibleName("Newest requests")
    table.setToolTip("The newest requests of the run; select one to read its text.")
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(20)
    table.setShowGrid(False)
    table.setFrameShape(QTableView.Shape.NoFrame)
    table.setAlternatingRowColors(True)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setTabKeyNavigation(False)
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    table.horizontalHeader().setMinimumSectionSize(36)
    table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
    table.horizontalHeader().setSectionResizeMode(3, QHeaderView.ResizeMode.ResizeToContents)
    table.horizontalHeader().setFont(text_font(8.5))
    table.setMinimumHeight(80)
    return table
