"""The window against a server with a known schedule: attach, run, move the slider, stop."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.scheduled_server import ScheduledServer
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from window.conftest import close

from app.places import Places
from app.window.main_window import MainWindow
from engine_launcher.states import EngineState
from measurements.run_folder.reader import read, read_record
from measurements.summary import summarize

LEFT = Qt.MouseButton.LeftButton
TTFT_MS, GAP_MS = 40, 10
LIMIT_MS = 30_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScheduledServer]:
    folder = tmp_path / "server"
    folder.mkdir()
    with ScheduledServer(folder, ttft_ms=TTFT_MS, gap_ms=GAP_MS) as running:
        yield running


def attach(qtbot: QtBot, window: MainWindow, url: str) -> None:
    engine = window.parts.engine
    engine.kind.setFocus()
    qtbot.keyClick(engine.kind, Qt.Key.Key_End)
    engine.url.clear()
    qtbot.keyClicks(engine.url, url)
    qtbot.mouseClick(engine.start, LEFT)
    qtbot.waitUntil(lambda: window.parts.header.state.text() == "engine ready", timeout=LIMIT_MS)
    qtbot.waitUntil(window.parts.load.run.isEnabled, timeout=LIMIT_MS)


def set_number(qtbot: QtBot, field: QWidget, text: str) -> None:
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def run(qtbot: QtBot, window: MainWindow, *, requests: str = "0") -> None:
    load = window.parts.load
    set_number(qtbot, load.max_tokens, "10")
    set_number(qtbot, load.requests, requests)
    qtbot.mouseClick(load.run, LEFT)
    qtbot.waitUntil(lambda: window.controller.session is not None, timeout=LIMIT_MS)


def ended(window: MainWindow) -> bool:
    return window.controller.session is None and not window.controller._starting_run


def test_from_attach_to_a_complete_run_folder(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    attach(qtbot, window, server.url)
    run(qtbot, window)
    parts = window.parts
    qtbot.waitUntil(lambda: parts.ttft.dots.count() >= 3, timeout=LIMIT_MS)
    assert parts.load.stop.isEnabled()
    assert not parts.load.max_tokens.isEnabled()

    parts.load.slider.setFocus()
    for _ in range(7):
        qtbot.keyClick(parts.load.slider, Qt.Key.Key_Right)
    in_flight = parts.header.figures["streams"]
    qtbot.waitUntil(lambda: in_flight.text() == "8 / 8", timeout=LIMIT_MS)
    qtbot.waitUntil(parts.itl_histogram.p50.isVisible, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: parts.streams.text.toPlainText() != "", timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: 8.0 in parts.throughput.target.yData, timeout=LIMIT_MS)

    qtbot.mouseClick(parts.load.stop, LEFT)
    qtbot.waitUntil(lambda: ended(window), timeout=LIMIT_MS)
    folder = window.controller.folder
    record, _ = read_record(folder)
    assert (record["state"], record["ended_by"]) == ("done", "hand")
    found = read(folder)
    assert found.warnings == ()
    assert set(found.load["concurrency"]) == {1.0, 8.0}
    assert parts.load.run.isEnabled()


def test_the_numbers_on_the_screen_are_the_summarys(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    attach(qtbot, window, server.url)
    run(qtbot, window, requests="12")
    qtbot.waitUntil(lambda: ended(window), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: window.parts.numbers.table.item(0, 1).text() == "12")
    summary = summarize(read(window.controller.folder))
    shown = window.controller.presenter.numbers
    for name in ("ttft", "itl", "tpot", "e2e"):
        assert getattr(shown, name).n == getattr(summary, name).n
        assert getattr(shown, name).p50.value == pytest.approx(getattr(summary, name).p50.value)
    assert "12 done" in window.parts.load.counts.text()


def test_an_open_loop_is_sent_at_its_rate_until_its_time_is_over(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    attach(qtbot, window, server.url)
    load = window.parts.load
    load.loop.setFocus()
    qtbot.keyClick(load.loop, Qt.Key.Key_Down)
    set_number(qtbot, load.rate, "20")
    set_number(qtbot, load.duration, "1")
    run(qtbot, window)
    qtbot.waitUntil(lambda: ended(window), timeout=LIMIT_MS)
    found = read(window.controller.folder)
    assert found.record["ended_by"] == "time"
    sent = found.sends["warmup"] == 0
    assert found.sends["planned_s"][sent] == pytest.approx(
        found.sends["planned_s"][sent][0] + np.arange(20) / 20
    )
    qtbot.waitUntil(lambda: "20 done" in load.counts.text(), timeout=LIMIT_MS)


def test_a_run_that_goes_on_ends_with_the_window_and_its_folder_is_whole(
    qtbot: QtBot, places: Places, server: ScheduledServer
) -> None:
    window = MainWindow(places)
    window.show()
    attach(qtbot, window, server.url)
    run(qtbot, window)
    qtbot.waitUntil(lambda: window.parts.ttft.dots.count() >= 1, timeout=LIMIT_MS)
    folder = window.controller.folder
    close(qtbot, window)
    assert read_record(folder)[0]["state"] == "done"
    assert read(folder).warnings == ()


def test_failures_are_said_by_reason(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    folder = tmp_path / "failing"
    folder.mkdir()
    with ScheduledServer(folder, chunks=3, end="cut", ttft_ms=5, gap_ms=5) as failing:
        attach(qtbot, window, failing.url)
        run(qtbot, window, requests="4")
        qtbot.waitUntil(lambda: ended(window), timeout=LIMIT_MS)
        label = window.parts.numbers.failures
        qtbot.waitUntil(lambda: label.text() != "", timeout=LIMIT_MS)
    assert window.parts.numbers.table.item(0, 1).text() == "0"


def test_an_attached_server_that_is_let_go_goes_on(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    attach(qtbot, window, server.url)
    qtbot.mouseClick(window.parts.engine.stop, LEFT)
    state = window.controller.engine
    qtbot.waitUntil(lambda: state.view.state is EngineState.STOPPED, timeout=LIMIT_MS)
    qtbot.waitUntil(window.parts.engine.start.isEnabled)
    attach(qtbot, window, server.url)


def test_nobody_at_the_url_is_one_sentence(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    server.stop()
    engine = window.parts.engine
    engine.kind.setCurrentIndex(2)
    qtbot.keyClicks(engine.url, server.url)
    qtbot.mouseClick(engine.start, LEFT)
    qtbot.waitUntil(lambda: engine.status.text().startswith("connecting"), timeout=LIMIT_MS)
    qtbot.waitUntil(engine.stop.isEnabled)
    qtbot.waitUntil(lambda: engine.error.text() != "", timeout=LIMIT_MS)
    assert not window.parts.load.run.isEnabled()


def test_a_run_folder_that_cannot_be_written_is_one_sentence(
    qtbot: QtBot, window: MainWindow, server: ScheduledServer
) -> None:
    attach(qtbot, window, server.url)
    runs = window.controller._places.runs
    runs.parent.mkdir(parents=True, exist_ok=True)
    runs.write_text("in the way")
    set_number(qtbot, window.parts.load.requests, "1")
    qtbot.mouseClick(window.parts.load.run, LEFT)
    qtbot.waitUntil(lambda: window.parts.load.error.text() != "", timeout=LIMIT_MS)
    assert window.controller.session is None
    assert window.parts.load.run.isEnabled()
