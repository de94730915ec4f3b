"""TTFT of each request at its send time, with running percentiles."""

import numpy as np
import pyqtgraph as pg

from app.charts.axes import TimeWindow, ceiling, time_ticks, value_ticks
from app.charts.card import ChartCard, LegendEntry
from app.charts.dots import Dots
from app.charts.picture import Picture
from app.charts.ttft_ring import RUNNING_REQUESTS, running_percentile
from app.window.theme import Theme

_LEGEND = (
    LegendEntry("request", "dots", "dot", short="each"),
    LegendEntry("p50", "p50"),
    LegendEntry("p90", "p90", "dashes"),
)
_HELP = (
    "Time to first token in milliseconds: from the moment a request's bytes are sent until its "
    "first generated text arrives. One dot a request, at its send time (seconds since the run "
    f"began). Lines: p50 and p90 over the last {RUNNING_REQUESTS} requests, begun "
    "anew when the concurrency is moved."
)


class TtftChart(ChartCard):
    """Dots and two running lines."""

    def __init__(self) -> None:
        super().__init__("Time to first token", "ms per request", _LEGEND, _HELP)
        self.dots = Dots()
        self.p50 = pg.PlotCurveItem()
        self.p90 = pg.PlotCurveItem()
        for item in (self.dots, self.p50, self.p90):
            self.plot.addItem(item)
        self._top_ms = 100.0

    def apply_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        super().apply_theme(theme)
        self.dots.set_colour(theme.dots)
        self.p50.setPen(pg.mkPen(theme.p50, width=1))
        self.p90.setPen(pg.mkPen(theme.p90, width=1, dash=[4, 3]))

    def show_picture(self, picture: Picture, window: TimeWindow) -> None:
        """Draw the newest requests of a run."""
        sent_s, ttft_s = picture.ttfts.dots()
        seen = sent_s >= window.left_s
        self.dots.set_data(sent_s[seen], ttft_s[seen] * 1e3)
        for curve, quantile in ((self.p50, 0.5), (self.p90, 0.9)):
            x, y = running_percentile(sent_s, ttft_s, quantile, picture.moves_s)
            curve.setData(x, y * 1e3)
        largest = float(np.max(ttft_s[seen])) * 1e3 if seen.any() else 0.0
        self._top_ms = ceiling(largest, self._top_ms)
        self.set_x(window.left_s, window.right_s, time_ticks(window))
        self.set_y(0.0, self._top_ms, value_ticks(self._top_ms))
