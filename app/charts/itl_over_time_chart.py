"""Density of inter-token latency over time, on a logarithmic axis."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF

from app.charts.axes import TimeWindow, decade_ticks, time_ticks
from app.charts.card import ChartCard, LegendEntry
from app.charts.picture import BINS, BINS_PER_DECADE, LOWEST_LOG, Picture, log_range_ms
from app.window.theme import Theme

_LEGEND = (LegendEntry("tokens", "accent", "block"),)
_HELP = (
    "Inter-token latency in milliseconds: the gap between two arrivals of one stream, shared "
    "among the later chunk's tokens. Brightness or depth of colour: how many tokens had that gap "
    "at that moment (seconds since the run began). Gaps below 0.1 ms, of chunks that shared a "
    "read, lie below the picture."
)
_LOWEST_MS_LOG = LOWEST_LOG + 3
_MOST_COLUMNS = 1200


class ItlOverTimeChart(ChartCard):
    """An image: a column a span of time, a row a bin of ITL."""

    def __init__(self) -> None:
        super().__init__("Inter-token latency over time", "log scale, ms", _LEGEND, _HELP)
        self.image = pg.ImageItem(axisOrder="col-major")
        self.image.setZValue(-5)  # above the grid; where there is nothing, it is transparent
        self.plot.addItem(self.image)

    def apply_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        super().apply_theme(theme)
        places = np.linspace(0.0, 1.0, len(theme.heat))
        colours = pg.ColorMap(places, [pg.mkColor(colour) for colour in theme.heat])
        table = colours.getLookupTable(nPts=256, alpha=True)
        table[0, 3] = 0
        self.image.setLookupTable(table)

    def show_picture(self, picture: Picture, window: TimeWindow, name: str) -> None:
        """Draw the columns that lie in the window; `name` says what the gaps are."""
        first = int(window.left_s / picture.column_s)
        last = min(picture.columns_until_now() + 1, len(picture.heat))
        low, high = log_range_ms(picture.histogram)
        if last > first:
            self._draw(picture.heat[first:last], first * picture.column_s, picture.column_s)
        else:
            self.image.clear()
        self.set_title(f"{name} over time")
        self.set_x(window.left_s, window.right_s, time_ticks(window))
        self.set_y(low, high, decade_ticks(low, high))

    def _draw(self, counts: np.ndarray, left_s: float, column_s: float) -> None:
        counts, joined = _thin(counts)
        top = np.log1p(float(counts.max()) or 1.0)
        shades = (np.log1p(counts) * (255.0 / top)).astype(np.uint8)
        self.image.setImage(shades, autoLevels=False, levels=(0, 255))
        width = len(counts) * joined * column_s
        height = BINS / BINS_PER_DECADE
        self.image.setRect(QRectF(left_s, _LOWEST_MS_LOG, width, height))


def _thin(counts: np.ndarray) -> tuple[np.ndarray, int]:
    """Join columns until they fit; return the counts and how many were joined."""
    joined = -(-len(counts) // _MOST_COLUMNS)
    if joined == 1:
        return counts, 1
    rest = -len(counts) % joined
    padded = np.pad(counts, ((0, rest), (0, 0)))
    return padded.reshape(-1, joined, counts.shape[1]).sum(axis=1), joined
