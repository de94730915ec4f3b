import sys

import numpy as np
import pytest
from hand_written_runs import load_rows, together
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot
from window.runs import batch, steady_stream

from app.charts.axes import TimeWindow, follow
from app.charts.card import ChartCard
from app.charts.dots import Dots
from app.charts.gaps import GapTracker
from app.charts.itl_histogram_chart import ItlHistogramChart
from app.charts.itl_over_time_chart import ItlOverTimeChart
from app.charts.picture import Picture
from app.charts.throughput_chart import ThroughputChart
from app.charts.ttft_chart import TtftChart
from app.window.theme import DARK, LIGHT, Theme

ITL = "Inter-token latency"
LOAD = load_rows((0.0, "measuring", 1, 1), (2.0, "measuring", 8, 1))


def picture_of(*streams: dict) -> Picture:
    picture = Picture()
    given = batch(**together(*streams), load=LOAD if streams else [])
    picture.feed(given, GapTracker().feed(given.tokens))
    return picture


def one_token() -> Picture:
    return picture_of(steady_stream(0, 0.0, tokens=1))


def all_nan() -> Picture:
    rows = steady_stream(0, 1.0)
    for row in rows["tokens"]:
        row.update(arrival_s=np.nan, since_send_s=np.nan)
    return picture_of(rows)


def infinite() -> Picture:
    rows = steady_stream(0, 1.0)
    rows["tokens"][-1].update(arrival_s=np.inf)
    return picture_of(rows)


def ordinary() -> Picture:
    return picture_of(*(steady_stream(number, 0.1 * number) for number in range(60)))


PICTURES = {
    "nothing": Picture,
    "one token": one_token,
    "NaN": all_nan,
    "infinity": infinite,
    "ordinary": ordinary,
}


def draw(chart: ChartCard, picture: Picture, window: TimeWindow | None = None) -> None:
    window = window or follow(picture.now_s, 120.0)
    match chart:
        case ItlHistogramChart():
            chart.show_picture(picture, 10.0, np.nan, ITL)
        case ItlOverTimeChart():
            chart.show_picture(picture, window, ITL)
        case _:
            chart.show_picture(picture, window)
    chart.repaint()


@pytest.fixture(params=[TtftChart, ThroughputChart, ItlOverTimeChart, ItlHistogramChart])
def chart(request: pytest.FixtureRequest, qtbot: QtBot) -> ChartCard:
    made = request.param()
    qtbot.addWidget(made)
    made.apply_theme(DARK)
    made.resize(400, 300)
    made.show()
    return made


@pytest.mark.parametrize("name", PICTURES)
def test_a_chart_draws_whatever_a_run_holds(chart: ChartCard, name: str) -> None:
    draw(chart, PICTURES[name]())
    low, high = chart.y_range()
    assert np.isfinite([low, high]).all()
    assert low < high
    assert not chart.grab().isNull()


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_a_chart_has_the_colour_of_its_card(chart: ChartCard, theme: Theme) -> None:
    chart.apply_theme(theme)
    draw(chart, Picture())
    view = chart.plot.geometry()
    corner = chart.grab().toImage().pixelColor(view.right() - 2, view.top() + 2)
    assert corner.name() == theme.card


def test_drawing_changes_what_is_seen(chart: ChartCard) -> None:
    draw(chart, Picture())
    before = chart.grab().toImage()
    draw(chart, ordinary())
    assert chart.grab().toImage() != before


def test_a_chart_survives_a_long_redraw_and_no_reference_is_lost(chart: ChartCard) -> None:
    picture = ordinary()
    references = sys.getrefcount(None)
    for step in range(150):
        draw(chart, picture, TimeWindow(step * 0.5, step * 0.5 + 120))
    assert sys.getrefcount(None) > references - 1000


def test_pyside_keeps_its_references_to_none() -> None:
    """PySide6 6.12 on Python 3.11 drops one on each void call (PYSIDE-3474)."""
    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(50):
        thing.setObjectName("a name")
    assert sys.getrefcount(None) > before - 25


def test_a_chart_says_title_unit_and_meaning(chart: ChartCard) -> None:
    assert chart.title.text()
    assert chart.unit.text()
    assert chart.legend.text()
    assert "millisecond" in chart.toolTip() or "per second" in chart.toolTip()


def test_a_narrow_chart_keeps_its_unit_and_gives_up_its_legend(chart: ChartCard) -> None:
    chart.resize(900, 300)
    assert chart.legend.isVisible()
    chart.resize(120, 300)
    assert chart.unit.isVisible()
    assert not chart.legend.isVisible()


def test_gaps_of_chunks_are_called_so(qtbot: QtBot) -> None:
    over_time = ItlOverTimeChart()
    qtbot.addWidget(over_time)
    over_time.show_picture(Picture(), follow(0.0, None), "Chunk gap")
    assert over_time.title.text() == "Chunk gap over time"


def test_each_request_is_a_dot(qtbot: QtBot) -> None:
    ttft = TtftChart()
    qtbot.addWidget(ttft)
    draw(ttft, ordinary())
    assert ttft.dots.count() == 60


def test_dots_that_are_not_finite_are_left_out(qtbot: QtBot) -> None:
    dots = Dots()
    dots.set_data(np.array([0.0, np.nan, 2.0]), np.array([1.0, 1.0, np.inf]))
    assert dots.count() == 1
    dots.set_data(np.empty(0), np.empty(0))
    assert dots.count() == 0


def test_a_percentile_that_is_not_shown_has_no_line(qtbot: QtBot) -> None:
    histogram = ItlHistogramChart()
    qtbot.addWidget(histogram)
    histogram.show_picture(ordinary(), 10.0, np.nan, ITL)
    assert histogram.p50.isVisible()
    assert not histogram.p99.isVisible()


def test_the_target_is_drawn_as_steps(qtbot: QtBot) -> None:
    throughput = ThroughputChart()
    qtbot.addWidget(throughput)
    draw(throughput, ordinary())
    assert set(throughput.target.yData) == {1.0, 8.0}


def test_the_rate_of_a_run_shorter_than_a_column_is_a_line(qtbot: QtBot) -> None:
    throughput = ThroughputChart()
    qtbot.addWidget(throughput)
    picture = Picture()
    given = batch(**steady_stream(0, 0.0, tokens=26))
    picture.feed(given, GapTracker().feed(given.tokens))
    draw(throughput, picture)
    assert throughput.rate.xData.tolist() == pytest.approx([0.0, 0.15, 0.3])
    assert set(throughput.rate.yData) == {26 / 0.3}


def test_a_long_run_is_thinned_to_what_can_be_seen(qtbot: QtBot) -> None:
    over_time = ItlOverTimeChart()
    qtbot.addWidget(over_time)
    picture = picture_of(*(steady_stream(number, 1.0 * number) for number in range(1500)))
    over_time.show_picture(picture, follow(picture.now_s, None), ITL)
    assert len(over_time.image.image) <= 1500
