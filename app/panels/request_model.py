"""The newest requests as a table model: rows come in at the top and keep their selection."""

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.charts.recent import STREAMING, StreamRow
from app.panels.wording import NOTHING, milliseconds, rate

_HEADERS = ("#", "TTFT ms", "tokens/s", "state")
_TIPS = (
    "Number of the request in this run.",
    "Time to first token in ms.",
    "Tokens per second after the first one, of this stream.",
    "waiting, streaming, ok, or why it ended; w marks a warm-up request.",
)
_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class RequestModel(QAbstractTableModel):
    """Rows newest first; `show_rows` moves from one list to the next in few steps."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[StreamRow] = []

    def show_rows(self, rows: list[StreamRow]) -> None:
        """Take over the newest rows."""
        known = {row.request_id for row in self._rows}
        added = next((k for k, row in enumerate(rows) if row.request_id in known), len(rows))
        kept = len(rows) - added
        if [row.request_id for row in rows[added:]] != self._ids()[:kept]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        self._drop_after(kept)
        if added:
            self.beginInsertRows(_ROOT, 0, added - 1)
            self._rows = rows
            self.endInsertRows()
        self._rows = rows
        if kept:
            last = self.index(len(rows) - 1, len(_HEADERS) - 1)
            self.dataChanged.emit(self.index(added, 0), last)

    def followed(self, before: int | None) -> int | None:
        """Return the request before while it streams, else the newest that does, else the last."""
        streaming = [row.request_id for row in self._rows if row.state == STREAMING]
        if before in streaming:
            return before
        last = before if before in self._ids() else next(iter(self._ids()), None)
        return streaming[0] if streaming else last

    def at(self, row: int) -> StreamRow | None:
        """Return a row, if there is one."""
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def rowCount(self, parent: _Index = _ROOT) -> int:  # noqa: N802 - Qt's name
        """Return how many rows there are."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:  # noqa: N802 - Qt's name
        """Return how many columns there are."""
        return 0 if parent.isValid() else len(_HEADERS)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a cell shows."""
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(row)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS[index.column()]
        return None

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name and tip."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        return _HEADERS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def _ids(self) -> list[int]:
        return [row.request_id for row in self._rows]

    def _drop_after(self, kept: int) -> None:
        if kept < len(self._rows):
            self.beginRemoveRows(_ROOT, kept, len(self._rows) - 1)
            del self._rows[kept:]
            self.endRemoveRows()


def _side(column: int) -> Qt.AlignmentFlag:
    """Return the alignment of a column: figures to the right, words to the left."""
    words = column == len(_HEADERS) - 1
    side = Qt.AlignmentFlag.AlignLeft if words else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


def _cells(row: StreamRow) -> tuple[str, str, str, str]:
    mark = " w" if row.warmup else ""
    ttft = NOTHING if row.ttft_s is None else milliseconds(row.ttft_s)
    return f"{row.request_id}", ttft, rate(row.tokens_per_s), f"{row.state}{mark}"
