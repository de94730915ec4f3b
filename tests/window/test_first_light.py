"""First light: the real window and a real vLLM, from Start to nothing left."""

from pathlib import Path

import numpy as np
import pytest
from fakes.fake_environment import unused_port
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.places import Places
from app.window.main_window import MainWindow
from engine_launcher import environments, records, sweep
from measurements.run_folder.reader import Run, read, read_record
from measurements.summary import summarize

CHECKPOINT = Path(__file__).parents[2] / "checkpoints" / "tiny-lm"
LEFT = Qt.MouseButton.LeftButton
READY_MS = 300_000
LIMIT_MS = 60_000

pytestmark = pytest.mark.engine


def type_into(qtbot: QtBot, field: QWidget, text: str) -> None:
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def start_engine(qtbot: QtBot, window: MainWindow) -> None:
    engine = window.parts.engine
    type_into(qtbot, engine.model.lineEdit(), str(CHECKPOINT))
    type_into(qtbot, engine.port, str(unused_port()))
    type_into(qtbot, engine.kv_space, "0.5")
    type_into(qtbot, engine.max_model_len, "512")
    qtbot.mouseClick(engine.start, LEFT)
    # A phase that lasts seconds: a shorter one may pass between two looks on a busy machine.
    phases = ("reading the configuration", "starting the engine core")
    qtbot.waitUntil(lambda: engine.status.text().startswith(phases), timeout=READY_MS)
    assert "vllm.entrypoints.openai.api_server" in engine.command_line.text()
    qtbot.waitUntil(window.parts.load.run.isEnabled, timeout=READY_MS)


def check_what_the_engine_tells(run: Run) -> None:
    for name, column in run.server_metrics.items():
        assert np.isfinite(column).all(), name
    summary = summarize(run)
    assert summary.engine_itl_mean_s > 0
    assert summary.engine_ttft_mean_s > 0
    assert summary.ttft_split.n == summary.ttft.n
    assert 0 < summary.ttft_split.prefill_s < summary.ttft.mean


@pytest.mark.skipif(
    environments.find_engine() is None or not CHECKPOINT.exists(),
    reason="needs `make engine` and checkpoints/tiny-lm",
)
def test_start_run_at_1_slider_to_8_stop_and_nothing_is_left(
    qtbot: QtBot, window: MainWindow, places: Places
) -> None:
    start_engine(qtbot, window)
    parts = window.parts
    assert "tiny-lm" in window.controller.engine.view.checkpoint
    assert "eager" in parts.engine.notes.text().lower()
    assert parts.log.view.toPlainText()

    qtbot.mouseClick(parts.load.run, LEFT)
    qtbot.waitUntil(lambda: parts.ttft.dots.count() >= 2, timeout=LIMIT_MS)
    parts.load.slider.setFocus()
    for _ in range(7):
        qtbot.keyClick(parts.load.slider, Qt.Key.Key_Right)
    in_flight = parts.header.figures["streams"]
    qtbot.waitUntil(lambda: in_flight.text() == "8 / 8", timeout=LIMIT_MS)
    before = parts.ttft.dots.count()
    qtbot.waitUntil(lambda: parts.ttft.dots.count() >= before + 8, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: parts.numbers.table.item(1, 1).text() != "0", timeout=LIMIT_MS)
    # The newest stream, which is followed, has no text while it waits.
    qtbot.waitUntil(lambda: bool(parts.streams.text.toPlainText()), timeout=LIMIT_MS)

    qtbot.mouseClick(parts.load.stop, LEFT)
    qtbot.waitUntil(lambda: window.controller.session is None, timeout=LIMIT_MS)
    folder = window.controller.folder
    record, _ = read_record(folder)
    run = read(folder)
    assert (record["state"], record["ended_by"]) == ("done", "hand")
    assert record["engine"]["model"]["checkpoint"] == "tiny-lm"
    assert run.warnings == ()
    assert summarize(run).itl.n > 0
    assert summarize(run).failed == 0
    check_what_the_engine_tells(run)

    ((_, engine_record),) = records.open_records(places.engines)
    assert sweep.members(engine_record)
    qtbot.mouseClick(parts.engine.stop, LEFT)
    qtbot.waitUntil(lambda: parts.header.state.text() == "engine stopped", timeout=LIMIT_MS)
    assert sweep.members(engine_record) == []
