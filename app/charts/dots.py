"""Many dots in one call: ten times cheaper than a scatter plot item."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

_SIZE = 4  # pixels


class Dots(pg.GraphicsObject):
    """Dots of one colour and size at (x, y)."""

    def __init__(self) -> None:
        super().__init__()
        self._polygon = QPolygonF()
        self._bounds = QRectF()
        self._pen = QPen()
        self.set_colour("#888888")

    def set_colour(self, colour: str) -> None:
        """Take a colour, `#rrggbb` or `#rrggbbaa`."""
        self._pen = pg.mkPen(colour, width=_SIZE)
        self._pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        self.update()

    def set_data(self, x: np.ndarray, y: np.ndarray) -> None:
        """Show these dots; what is not finite is left out."""
        kept = np.isfinite(x) & np.isfinite(y)
        x, y = x[kept], y[kept]
        self.prepareGeometryChange()
        self._polygon = pg.functions.arrayToQPolygonF(x, y) if len(x) else QPolygonF()
        self._bounds = _bounds(x, y)
        self.update()

    def count(self) -> int:
        """Return how many dots are shown."""
        return self._polygon.size()

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """Return the rectangle that holds all dots."""
        return self._bounds

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,  # noqa: ARG002 - Qt's signature
        widget: QWidget | None = None,  # noqa: ARG002 - Qt's signature
    ) -> None:
        """Draw all dots at once."""
        painter.setPen(self._pen)
        painter.drawPoints(self._polygon)


def _bounds(x: np.ndarray, y: np.ndarray) -> QRectF:
    if not len(x):
        return QRectF()
    corners = QPointF(float(x.min()), float(y.min())), QPointF(float(x.max()), float(y.max()))
    return QRectF(*corners).adjusted(-1e-6, -1e-6, 1e-6, 1e-6)
