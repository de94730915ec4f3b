"""Distribution of inter-token latency over the whole run, with p50 and p99."""

import math

import numpy as np
import pyqtgraph as pg

from app.charts.axes import ceiling, decade_ticks, value_ticks
from app.charts.card import ChartCard, LegendEntry
from app.charts.picture import BINS_PER_DECADE, LOWEST_LOG, Picture, log_range_ms
from app.window.theme import Theme, text_font

_LEGEND = (LegendEntry("p50", "p50"), LegendEntry("p99", "bad", "dashes"))
_HELP = (
    "How many tokens had which inter-token latency, in milliseconds on a logarithmic axis, over "
    "the whole run without its warm-up. Lines: its p50 and p99; a "
    "percentile with too few samples is not drawn. Gaps below 0.1 ms, of chunks that shared a "
    "read, lie below the picture."
)
_LOWEST_MS_LOG = LOWEST_LOG + 3


class ItlHistogramChart(ChartCard):
    """Bars over bins of ITL and two upright lines."""

    def __init__(self) -> None:
        super().__init__("Inter-token latency", "tokens per bin, ms", _LEGEND, _HELP)
        self.bars = pg.BarGraphItem(x=[], height=[], width=1.0)
        self.plot.addItem(self.bars)
        self.p50 = _marker(0.94, side=1)
        self.p99 = _marker(0.94, side=0)
        self.plot.addItem(self.p50)
        self.plot.addItem(self.p99)
        self._top = 10.0

    def apply_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        super().apply_theme(theme)
        self.bars.setOpts(pen=None, brush=pg.mkBrush(theme.accent))
        for line, colour, dash in ((self.p50, theme.p50, None), (self.p99, theme.bad, [4, 3])):
            line.setPen(pg.mkPen(colour, width=1, dash=dash))
            line.label.setColor(pg.mkColor(colour))

    def show_picture(self, picture: Picture, p50_ms: float, p99_ms: float, name: str) -> None:
        """Draw the whole run; NaN: the percentile is not shown; `name`: what the gaps are."""
        counts = picture.histogram
        self._show_bars(counts)
        _place(self.p50, "p50", p50_ms)
        _place(self.p99, "p99", p99_ms)
        self.set_title(name)
        self._top = ceiling(float(counts[1:].max()), self._top)
        low, high = log_range_ms(counts)
        self.set_x(low, high, decade_ticks(low, high))
        self.set_y(0.0, self._top, value_ticks(self._top))

    def _show_bars(self, counts: np.ndarray) -> None:
        used = np.flatnonzero(counts[1:]) + 1  # the lowest bin: see `used_bins`
        width = 1 / BINS_PER_DECADE
        middles = _LOWEST_MS_LOG + (used + 0.5) * width
        self.bars.setOpts(x=middles, height=counts[used].astype(float), width=width * 0.88)


def _marker(height: float, *, side: int) -> pg.InfiniteLine:
    """Return an upright line whose label stands left (1) or right (0) of it."""
    options = {"position": height, "movable": False, "anchors": [(side, 0.5), (side, 0.5)]}
    line = pg.InfiniteLine(angle=90, label="", labelOpts=options)
    line.label.setFont(text_font(8.5))
    line.hide()
    return line


def _place(line: pg.InfiniteLine, name: str, value_ms: float) -> None:
    if not math.isfinite(value_ms) or value_ms <= 0:
        line.hide()
        return
    line.show()  # first: a hidden label takes no text
    line.setValue(math.log10(value_ms))
    line.label.setFormat(f"{name} {value_ms:.3g}")
