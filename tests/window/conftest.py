import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before Qt is asked for a screen

from fakes.engine_waiting import living
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from app.places import Places, places_in
from app.window.main_window import MainWindow, make_application
from engine_launcher.supervisor import read_process
from engine_launcher.sweep import kill

CLOSE_LIMIT_MS = 15_000


@pytest.fixture(scope="session")
def qapp_cls() -> type:
    from PySide6.QtWidgets import QApplication

    return QApplication


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path) -> None:
    """Layout and colours of the person at this machine are none of a test's business."""
    for kind in (QSettings.Format.NativeFormat, QSettings.Format.IniFormat):
        QSettings.setPath(kind, QSettings.Scope.UserScope, str(tmp_path / "settings"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return places_in(tmp_path / "lab")


@pytest.fixture
def window(qtbot: QtBot, places: Places, tmp_path: Path) -> Iterator[MainWindow]:
    make_application()
    made = MainWindow(places)
    made.resize(1280, 800)
    made.show()
    qtbot.waitExposed(made)
    yield made
    close(qtbot, made)
    left = living(tmp_path)
    kill(process for pid in left if (process := read_process(pid)))
    assert left == []


def close(qtbot: QtBot, window: MainWindow) -> None:
    """Close as a person does, and wait until the window has gone."""
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=CLOSE_LIMIT_MS)
    window.deleteLater()
