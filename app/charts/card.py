"""A chart in a card: title, unit, legend, and a plot whose ranges and ticks we set ourselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.window.theme import Theme, text_font

Ticks = Sequence[tuple[float, str]]
_EDGE = 12  # pixels
_SPACING = 24
_LEFT_AXIS = 44


@dataclass(frozen=True)
class LegendEntry:
    """What a colour means; `theme_colour` is the name of a `Theme` field."""

    label: str
    theme_colour: str
    mark: str = "line"  # line, dashes, dot or block: a colour never speaks alone
    short: str = ""  # the label where there is little room


_MARKS = {"line": "━━", "dashes": "╍╍", "dot": "●", "block": "■"}


class ChartCard(QFrame):
    """The frame that all charts share. Subclasses add items to `plot` and set ranges."""

    def __init__(
        self,
        title: str,
        unit: str,
        legend: Sequence[LegendEntry],
        help_text: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self.setToolTip(help_text)
        self.setAccessibleName(title)
        self.title = QLabel(title)
        self.title.setFont(text_font(9.5, bold=True))
        self._units = (unit, unit.rpartition(", ")[2].split()[0])  # in full and short
        self.unit = QLabel(unit)
        self.unit.setFont(text_font(8.5))
        self.unit.setProperty("muted", "true")
        self.legend = QLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setFont(text_font(8.5))
        self._entries = legend
        self._legends: tuple[str, ...] = ()  # in full and short
        self.plot = _bare_plot()
        self._grid = pg.PlotCurveItem(connect="pairs", skipFiniteCheck=True)
        self._grid.setZValue(-10)
        self.plot.addItem(self._grid)
        self._ticks: dict[str, Ticks] = {}
        self._ranges = {"bottom": (0.0, 1.0), "left": (0.0, 1.0)}
        self._lay_out()

    def apply_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.plot.setBackground(theme.card)
        for name in ("left", "bottom", "right"):
            axis = self.plot.getAxis(name)
            axis.setPen(pg.mkPen(theme.border))
            axis.setTextPen(pg.mkPen(theme.muted))
        self._grid.setPen(pg.mkPen(theme.grid, width=1))
        full = [_legend_part(entry, entry.label, theme) for entry in self._entries]
        short = [_legend_part(entry, entry.short or entry.label, theme) for entry in self._entries]
        self._legends = ("&nbsp;&nbsp; ".join(full), "&nbsp; ".join(short))
        self._fit_top()

    def set_x(self, low: float, high: float, ticks: Ticks) -> None:
        """Set the range of the x axis and its ticks, if they changed."""
        if self._set_axis("bottom", low, high, ticks):
            self.plot.setXRange(low, high, padding=0)

    def set_y(self, low: float, high: float, ticks: Ticks) -> None:
        """Set the range of the y axis and its ticks, if they changed."""
        if self._set_axis("left", low, high, ticks):
            self.plot.setYRange(low, high, padding=0)

    def y_range(self) -> tuple[float, float]:
        """Return the range that is shown."""
        return self._ranges["left"]

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Shorten legend and unit where the title needs their room; let the legend go at last."""
        super().resizeEvent(event)
        self._fit_top()

    def set_title(self, title: str) -> None:
        """Change the title."""
        if title != self.title.text():
            self.title.setText(title)
            self._fit_top()

    def _fit_top(self) -> None:
        room = self.width() - self.title.sizeHint().width() - 2 * _EDGE - _SPACING
        fits = False
        for unit, text in product(self._units, self._legends):
            self.unit.setText(unit)
            self.legend.setText(text)
            fits = self.unit.sizeHint().width() + self.legend.sizeHint().width() <= room
            if fits:
                break
        self.legend.setVisible(fits)

    def _set_axis(self, name: str, low: float, high: float, ticks: Ticks) -> bool:
        if self._ranges[name] == (low, high) and self._ticks.get(name) == ticks:
            return False
        self._ranges[name] = (low, high)
        self._ticks[name] = ticks
        self.plot.getAxis(name).setTicks([list(ticks), []])
        self._draw_grid()
        return True

    def _draw_grid(self) -> None:
        """Draw horizontal lines as one curve: showGrid costs 11 ms a frame."""
        left, right = self._ranges["bottom"]
        heights = np.array([place for place, _ in self._ticks.get("left", ())])
        x = np.tile([left, right], len(heights))
        self._grid.setData(x, np.repeat(heights, 2))

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setContentsMargins(_EDGE, 0, _EDGE, 0)
        top.setSpacing(6)
        top.addWidget(self.title)
        top.addWidget(self.unit)
        top.addStretch(1)
        top.addWidget(self.legend)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 8, 8, 6)
        layout.setSpacing(2)
        layout.addLayout(top)
        layout.addWidget(self.plot, 1)
        self.setMinimumSize(200, 140)


def _legend_part(entry: LegendEntry, label: str, theme: Theme) -> str:
    colour = getattr(theme, entry.theme_colour)[:7]
    mark = f'<span style="color:{colour}">{_MARKS[entry.mark]}</span>'
    return f'{mark}&nbsp;<span style="color:{theme.muted}">{label}</span>'


def _bare_plot() -> pg.PlotWidget:
    plot = pg.PlotWidget()
    plot.setFrameShape(QFrame.Shape.NoFrame)
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=False, y=False)
    plot.disableAutoRange()
    plot.getPlotItem().setContentsMargins(0, 8, 4, 0)  # room for the topmost and last label
    for name in ("left", "bottom"):
        axis = plot.getAxis(name)
        axis.enableAutoSIPrefix(False)
        axis.setStyle(tickFont=text_font(8.5), tickLength=0, tickTextOffset=5)
    plot.getAxis("left").setWidth(_LEFT_AXIS)
    return plot


def hue(colour: str) -> pg.Qt.QtGui.QColor:
    """Return a theme colour, `#rrggbb` or `#rrggbbaa`, as Qt wants it."""
    return pg.mkColor(colour)
