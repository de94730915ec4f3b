"""Export CSV…: what, of which runs, in which dialect, and where to."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.panels.forms import add_row, button, choice, grid, muted, say, sentence_label
from app.places import typed_path
from measurements.run_folder.export import ExportDialect, What
from measurements.run_folder.reader import RunEntry

_WHATS = (
    ("requests: a row a request", "requests"),
    ("tokens: a row an arrival", "tokens"),
    ("summary: a row a run and level", "summary"),
)
_DIALECTS = (
    ("1.5 , fields by comma", ExportDialect()),
    ("1,5 ; fields by semicolon", ExportDialect(delimiter=";", decimal=",")),
    ("1.5 ; fields by semicolon", ExportDialect(delimiter=";")),
)
_FOLDER_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, kw_only=True)
class ExportOrder:
    """What a person asked to be written."""

    runs: tuple[Path, ...]
    what: What
    destination: Path
    dialect: ExportDialect


class ExportDialog(QDialog):
    """Gives an `ExportOrder`; shows how it went."""

    export_asked = Signal(ExportOrder)

    def __init__(
        self, runs: Sequence[RunEntry], current: Path | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export CSV")
        self.setMinimumWidth(520)
        self._make_fields(runs, current)
        self._lay_out()
        self.browse.clicked.connect(self._on_browse_clicked)
        self.what.currentIndexChanged.connect(self._on_what_changed)
        self.export.clicked.connect(self._on_export_clicked)
        self.cancel.clicked.connect(self.reject)
        first = current or next((entry.folder for entry in runs), None)
        self._folder = first.parent if first else Path.home()
        self._suggested = ""
        self._on_what_changed()

    def order(self) -> ExportOrder:
        """Return what the form says."""
        items = (self.runs.item(row) for row in range(self.runs.count()))
        chosen = [item for item in items if item.checkState() is Qt.CheckState.Checked]
        dialect: ExportDialect = self.dialect.currentData()
        return ExportOrder(
            runs=tuple(item.data(_FOLDER_ROLE) for item in chosen),
            what=self.what.currentData(),
            destination=typed_path(self.destination.text().strip()),
            dialect=ExportDialect(
                delimiter=dialect.delimiter, decimal=dialect.decimal, bom=self.bom.isChecked()
            ),
        )

    def show_outcome(self, sentence: str, *, done: bool) -> None:
        """Say how it went; once written, only closing is left."""
        say(self.error, "" if done else sentence)
        say(self.outcome, sentence if done else "")
        self.export.setEnabled(True)
        if done:
            self.cancel.setText("Close")

    def _make_fields(self, runs: Sequence[RunEntry], current: Path | None) -> None:
        self.runs = QListWidget()
        self.runs.setToolTip("The runs to write; several are joined, with a column for the run.")
        self.runs.setAccessibleName("Runs")
        for entry in runs:
            item = QListWidgetItem(f"{entry.name}   {entry.state}")
            item.setData(_FOLDER_ROLE, entry.folder)
            checked = entry.folder == current
            item.setCheckState(Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked)
            self.runs.addItem(item)
        self.what = choice(_WHATS, "Which table is written.")
        self.dialect = choice(
            _DIALECTS, "Decimal mark and field separator, as spreadsheets differ."
        )
        self.bom = QCheckBox("byte-order mark, for spreadsheets")
        self.bom.setToolTip("Begin the file with a UTF-8 mark, by which spreadsheets know it.")
        self.destination = QLineEdit()
        self.destination.setToolTip("The new file; an existing one is never written over.")
        self.browse = button("Browse…", "Choose where the file goes.")
        self.export = button("Export", "Write the file.", "primary")
        self.export.setDefault(True)
        self.cancel = button("Cancel", "Close without writing.")
        self.error = sentence_label("bad")
        self.outcome = sentence_label("good")

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setSpacing(8)
        name = muted("&Runs")
        name.setBuddy(self.runs)
        layout.addWidget(name)
        layout.addWidget(self.runs, 1)
        form = grid()
        add_row(form, "Table", self.what)
        add_row(form, "Numbers", self.dialect)
        add_row(form, "File", self.destination)
        layout.addLayout(form)
        row = QHBoxLayout()
        row.addWidget(self.bom)
        row.addStretch(1)
        row.addWidget(self.browse)
        layout.addLayout(row)
        layout.addWidget(self.error)
        layout.addWidget(self.outcome)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.export)
        layout.addLayout(buttons)

    def _on_browse_clicked(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self,
            "Export CSV",
            self.destination.text(),
            "CSV (*.csv)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            self.destination.setText(path)

    def _on_what_changed(self) -> None:
        if self.destination.text() == self._suggested:  # what a person typed stays
            self._suggested = str(unused(self._folder / f"{self.what.currentData()}.csv"))
            self.destination.setText(self._suggested)

    def _on_export_clicked(self) -> None:
        order = self.order()
        if not self.destination.text().strip():
            self.show_outcome("Choose a file to write.", done=False)
            return
        self.export.setEnabled(False)
        self.export_asked.emit(order)


def unused(path: Path) -> Path:
    """Return the path, or the first of path-2, path-3 … that does not exist."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_stem(f"{path.stem}-{number}")
    return candidate
