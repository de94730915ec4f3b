"""Output tokens/s over time, with the streams asked for as a step line on an axis of its own."""

import numpy as np
import pyqtgraph as pg

from app.charts.axes import TimeWindow, ceiling, time_ticks, value_ticks
from app.charts.card import ChartCard, LegendEntry
from app.charts.picture import Picture
from app.window.theme import Theme

_LEGEND = (
    LegendEntry("tokens/s", "accent", short="rate"),
    LegendEntry("streams (right)", "warning", "dashes", short="streams →"),
)
_HELP = (
    "Output tokens that arrived per second, warm-up included, over seconds since the run began. "
    "Step line, right axis: the concurrency that the slider asked for, in streams."
)
_RIGHT_AXIS = 34


class ThroughputChart(ChartCard):
    """A filled line and a step line."""

    def __init__(self) -> None:
        super().__init__("Throughput", "output, tokens/s", _LEGEND, _HELP)
        self.rate = pg.PlotCurveItem(fillLevel=0)
        self.plot.addItem(self.rate)
        self.target = pg.PlotCurveItem(x=[0.0, 1e-9], y=[0.0], stepMode="center")
        self._right = pg.ViewBox(enableMenu=False)
        self._add_right_axis()
        self._top = 10.0
        self._top_streams = 2.0

    def apply_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        super().apply_theme(theme)
        self.rate.setPen(pg.mkPen(theme.accent, width=1))
        self.rate.setBrush(pg.mkBrush(theme.fill))
        self.target.setPen(pg.mkPen(theme.warning, width=1, dash=[4, 3]))

    def show_picture(self, picture: Picture, window: TimeWindow) -> None:
        """Draw the part of a run that lies in the window."""
        x, y = picture.tokens_per_s()
        seen = x >= window.left_s - picture.column_s
        self.rate.setData(*_to_both_ends(x[seen], y[seen], picture))
        edges, streams = picture.target_steps()
        self._show_target(edges, streams)
        self._top = ceiling(float(y[seen].max()) if seen.any() else 0.0, self._top)
        self.set_x(window.left_s, window.right_s, time_ticks(window))
        self.set_y(0.0, self._top, value_ticks(self._top))

    def _show_target(self, edges: np.ndarray, streams: np.ndarray) -> None:
        known = np.flatnonzero(np.isfinite(streams))
        if not len(known):
            self.target.setData([0.0, 1e-9], [0.0])
            return
        first, last = known[0], known[-1] + 1
        self.target.setData(edges[first : last + 1], streams[first:last])
        top = ceiling(float(streams[known].max()), self._top_streams)
        self._top_streams = top
        self._right.setYRange(0.0, top, padding=0)
        ticks = [tick for tick in value_ticks(top) if float(tick[0]).is_integer()]
        self.plot.getAxis("right").setTicks([ticks, []])

    def _add_right_axis(self) -> None:
        item = self.plot.getPlotItem()
        item.showAxis("right")
        axis = item.getAxis("right")
        axis.setWidth(_RIGHT_AXIS)
        axis.enableAutoSIPrefix(False)
        axis.setStyle(tickFont=item.getAxis("left").style["tickFont"], tickLength=0)
        item.scene().addItem(self._right)
        axis.linkToView(self._right)
        self._right.setZValue(10)  # above the plot, whose grid would cover it
        self._right.setXLink(item)
        self._right.setMouseEnabled(x=False, y=False)
        self._right.disableAutoRange()
        self._right.setYRange(0.0, 2.0, padding=0)
        axis.setTicks([[(0.0, "0"), (1.0, "1"), (2.0, "2")], []])
        self._right.addItem(self.target)
        item.getViewBox().sigResized.connect(self._on_resized)

    def _on_resized(self) -> None:
        self._right.setGeometry(self.plot.getPlotItem().getViewBox().sceneBoundingRect())


def _to_both_ends(x: np.ndarray, y: np.ndarray, picture: Picture) -> tuple[np.ndarray, np.ndarray]:
    """Draw the outermost columns in full: one alone would be a point, which nobody sees."""
    if not len(x):
        return x, y
    half_s = picture.column_s / 2
    left, right = max(0.0, x[0] - half_s), min(x[-1] + half_s, picture.now_s)
    return np.concatenate([[left], x, [right]]), np.concatenate([y[:1], y, y[-1:]])
