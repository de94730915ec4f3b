import os
from pathlib import Path

import pytest
from fakes.fake_environment import fake_checkpoint
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QMenu,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window.conftest import close
from window.runs import write_steady_run

from app.panels.export_dialog import ExportDialog
from app.places import Places
from app.window.main_window import MainWindow
from app.window.theme import DARK, LIGHT
from engine_launcher.states import EngineState

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier
INPUTS = (QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit)


def inputs(widget: QWidget) -> list[QWidget]:
    """The controls of our own; Qt's own parts of them are left out."""
    within = (QAbstractSpinBox, QComboBox, QAbstractItemView)
    found = [child for child in widget.findChildren(QWidget) if isinstance(child, INPUTS)]
    return [
        child
        for child in found
        if not isinstance(child, QScrollBar)
        and not isinstance(child.parent(), within)
        and not child.objectName().startswith("qt_")
    ]


def choose(window: MainWindow, menu: str, entry: str) -> None:
    """Trigger a menu entry by what is written on it."""
    menus = window.findChildren(QMenu)
    (found,) = [
        action
        for one in menus
        if one.title().replace("&", "") == menu
        for action in one.actions()
        if action.text().replace("&", "") == entry
    ]
    found.trigger()


@pytest.mark.parametrize("panel", ["engine", "load", "numbers", "streams", "kv"])
def test_every_control_has_a_tool_tip_and_a_name(window: MainWindow, panel: str) -> None:
    for control in inputs(getattr(window.parts, panel)):
        name = control.accessibleName() or getattr(control, "text", str)()
        assert control.toolTip(), name
        assert control.accessibleName() or control.text()


def test_every_chart_and_figure_explains_itself(window: MainWindow) -> None:
    for chart in window.parts.charts:
        assert chart.toolTip()
    for label in window.parts.header.figures.values():
        assert label.parentWidget().toolTip()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
def test_nothing_is_wider_than_its_panel(
    window: MainWindow, qtbot: QtBot, width: int, height: int
) -> None:
    window.resize(width, height)
    qtbot.waitUntil(lambda: window.width() == width)
    for dock in window.docks.values():
        for control in inputs(dock.widget()):
            if control.isVisible():
                right = control.mapTo(dock.widget(), control.rect().topRight()).x()
                assert right <= dock.widget().width()


def test_the_window_begins_with_an_engine_at_rest(window: MainWindow) -> None:
    assert window.parts.engine.start.isEnabled()
    assert not window.parts.engine.stop.isEnabled()
    assert not window.parts.load.run.isEnabled()
    assert not window.parts.load.stop.isEnabled()
    assert window.parts.header.state.text() == "engine stopped"


def test_the_colours_can_be_switched_and_are_remembered(
    qtbot: QtBot, window: MainWindow, places: Places
) -> None:
    choose(window, "Colours", "Light")
    assert QApplication.palette().window().color().name() == LIGHT.window
    choose(window, "Colours", "Dark")
    assert QApplication.palette().window().color().name() == DARK.window
    again = MainWindow(places)
    assert again.scheme == "dark"
    close(qtbot, again)


def test_a_panel_can_be_hidden_and_the_layout_is_remembered(qtbot: QtBot, places: Places) -> None:
    window = MainWindow(places)
    window.show()
    choose(window, "View", "Engine log")
    assert not window.docks["log"].isVisible()
    close(qtbot, window)
    again = MainWindow(places)
    again.show()
    assert not again.docks["log"].isVisible()
    choose(again, "View", "Restore the layout")
    assert again.docks["log"].isVisible()
    close(qtbot, again)


def test_a_past_run_shows_its_numbers_its_charts_and_its_checkpoint(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    plan = {"checkpoint": "own-name", "load": {"concurrency": 1}}
    folder = write_steady_run(tmp_path / "past", requests=120, plan=plan)
    window.controller.open_run(folder)
    table = window.parts.numbers.table
    qtbot.waitUntil(lambda: table.item(0, 1).text() == "119")
    assert table.item(0, 3).text() == "50.0"
    assert table.item(1, 3).text() == "10.00"
    qtbot.waitUntil(lambda: window.parts.ttft.dots.count() == 119)
    qtbot.waitUntil(window.parts.itl_histogram.p50.isVisible)
    header = window.parts.header
    assert header.subject.text() == "past run past · own-name"
    assert (header.state.text(), header.engine.text()) == ("engine stopped", "")
    assert header.figures["rate"].text() == "50.0 tok/s"
    assert window.parts.numbers.rate.text() == "50.0 output tokens/s"
    assert str(folder) in window.parts.status.labels["folder"].text()


def test_a_folder_that_holds_no_run_is_one_sentence(window: MainWindow, tmp_path: Path) -> None:
    window.controller.open_run(tmp_path)
    assert "is not a run folder" in window.parts.load.error.text()
    assert window.controller.folder is None


def test_a_run_with_damaged_lines_opens_and_says_so(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    folder = write_steady_run(tmp_path / "past")
    with (folder / "tokens.csv").open("a") as file:
        file.write("this,is,no,row\n")
    window.controller.open_run(folder)
    label = window.parts.status.labels["damage"]
    qtbot.waitUntil(lambda: label.text() == "1 damaged lines were left out")


def test_an_engine_that_cannot_start_says_why_at_once(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.parts.engine.model.setCurrentText(str(tmp_path / "nowhere"))
    qtbot.mouseClick(window.parts.engine.start, LEFT)
    qtbot.waitUntil(lambda: "nowhere" in window.parts.engine.error.text())
    assert window.controller.engine.view.state is EngineState.STOPPED
    qtbot.waitUntil(window.parts.engine.start.isEnabled)


def test_a_url_that_is_none_is_one_sentence(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.engine.kind.setCurrentIndex(2)
    qtbot.keyClicks(window.parts.engine.url, "ftp://somewhere")
    qtbot.mouseClick(window.parts.engine.start, LEFT)
    qtbot.waitUntil(lambda: "ftp" in window.parts.engine.error.text())


def test_the_kv_panel_reads_the_model_of_the_engine_panel(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    shape = {"num_hidden_layers": 2, "hidden_size": 256, "torch_dtype": "bfloat16"}
    model = fake_checkpoint(tmp_path / "own-name", **shape)
    window.parts.engine.model.lineEdit().selectAll()
    qtbot.keyClicks(window.parts.engine.model.lineEdit(), str(model))
    window.docks["kv"].raise_()
    qtbot.mouseClick(window.parts.kv.read, LEFT)
    assert window.parts.kv.total.text() == f"{2 * 2 * 4 * 32 * 2048 * 2:,} bytes"


def exporting(qtbot: QtBot, window: MainWindow) -> ExportDialog:
    choose(window, "File", "Export CSV…")
    qtbot.waitUntil(lambda: window._dialog is not None)
    return window._dialog


def test_an_export_joins_the_chosen_runs(
    qtbot: QtBot, window: MainWindow, places: Places, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        write_steady_run(places.runs / name, started_utc=f"2026-01-01T00:00:0{len(name)}Z")
    dialog = exporting(qtbot, window)
    for row in range(2):
        dialog.runs.item(row).setCheckState(Qt.CheckState.Checked)
    chosen = {dialog.runs.item(row).text().split()[0] for row in range(2)}
    target = tmp_path / "joined.csv"
    dialog.dialect.setCurrentIndex(1)
    dialog.destination.setText(str(target))
    qtbot.mouseClick(dialog.export, LEFT)
    qtbot.waitUntil(lambda: "80 rows written" in dialog.outcome.text())
    lines = target.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("run;started_utc;request_id")
    assert {line.split(";")[0] for line in lines[1:]} == chosen
    assert ",050000000" in lines[1]
    dialog.reject()


def test_an_export_never_writes_over_a_file(
    qtbot: QtBot, window: MainWindow, places: Places, tmp_path: Path
) -> None:
    write_steady_run(places.runs / "one")
    target = tmp_path / "taken.csv"
    target.write_text("mine")
    dialog = exporting(qtbot, window)
    dialog.runs.item(0).setCheckState(Qt.CheckState.Checked)
    dialog.destination.setText(str(target))
    qtbot.mouseClick(dialog.export, LEFT)
    qtbot.waitUntil(lambda: "exists already" in dialog.error.text())
    assert target.read_text() == "mine"
    dialog.reject()


def test_an_export_of_nothing_is_one_sentence(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    dialog = exporting(qtbot, window)
    dialog.destination.setText(str(tmp_path / "new.csv"))
    qtbot.mouseClick(dialog.export, LEFT)
    qtbot.waitUntil(lambda: "choose at least one run" in dialog.error.text())
    dialog.reject()


def test_the_export_offers_a_name_that_is_free(qtbot: QtBot, tmp_path: Path) -> None:
    from app.panels.export_dialog import unused

    (tmp_path / "requests.csv").touch()
    assert unused(tmp_path / "requests.csv") == tmp_path / "requests-2.csv"


def test_the_window_closes_and_leaves_nothing_ticking(qtbot: QtBot, places: Places) -> None:
    window = MainWindow(places)
    window.show()
    close(qtbot, window)
    assert not window.controller._timer.isActive()


@pytest.mark.skipif(
    os.environ["QT_QPA_PLATFORM"] != "offscreen",
    reason="without a window manager nothing is active",
)
def test_a_key_leads_to_the_slider(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_K, CONTROL)
    qtbot.waitUntil(window.parts.load.slider.hasFocus)


def test_the_tab_key_reaches_every_control_of_the_load(qtbot: QtBot, window: MainWindow) -> None:
    load = window.parts.load
    load.slider.setFocus()
    reached = set()
    for _ in range(40):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        reached.add(window.focusWidget())
    wanted = {load.concurrency, load.prompts, load.max_tokens, load.temperature, load.requests}
    assert wanted <= reached


def test_checkpoints_on_the_disk_are_offered_by_name(qtbot: QtBot, places: Places) -> None:
    fake_checkpoint(places.checkpoints / "tiny-lm")
    Path(places.checkpoints / "no-checkpoint").mkdir()
    window = MainWindow(places)
    box = window.parts.engine.model
    assert [box.itemText(row) for row in range(box.count())] == ["tiny-lm"]
    assert window.parts.engine.settings().model == str(places.checkpoints / "tiny-lm")
    close(qtbot, window)


def test_a_typed_destination_stays_when_another_table_is_chosen(
    qtbot: QtBot, window: MainWindow
) -> None:
    dialog = exporting(qtbot, window)
    assert dialog.destination.text().endswith("requests.csv")
    dialog.what.setCurrentIndex(2)
    assert dialog.destination.text().endswith("summary.csv")
    dialog.destination.selectAll()
    qtbot.keyClicks(dialog.destination, "mine.csv")
    dialog.what.setCurrentIndex(1)
    assert dialog.destination.text() == "mine.csv"
    dialog.reject()


def test_a_past_run_is_shown_as_a_whole_and_the_menu_says_so(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.controller.open_run(write_steady_run(tmp_path / "past"))
    checked = [action.text() for action in window.spans.actions() if action.isChecked()]
    assert checked == ["Whole run"]


def test_no_two_entries_share_a_key(window: MainWindow) -> None:
    menus = window.findChildren(QMenu)
    keys = [action.shortcut().toString() for menu in menus for action in menu.actions()]
    used = [key for key in keys if key]
    assert {"Ctrl+O", "Ctrl+S", "Ctrl+Q", "Ctrl+E", "Ctrl+R", "Esc"} <= set(used)
    assert len(used) == len(set(used))
