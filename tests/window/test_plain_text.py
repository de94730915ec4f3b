"""Text from a server, a file or a model is shown as it stands, and never read as HTML."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.panels.forms import set_plain_tip
from app.window.main_window import MainWindow

HTML = "<b>bold</b><img src='file:///etc/passwd'>"


def test_names_from_outside_are_never_rich_text(window: MainWindow) -> None:
    header, status = window.parts.header, window.parts.status
    header.show_subject(HTML)
    status.say("folder", HTML)
    for label in (header.subject, *status.labels.values()):
        assert label.textFormat() == Qt.TextFormat.PlainText


@pytest.mark.parametrize("part", ["subject", "read", "log"])
def test_tips_show_names_from_outside_as_they_stand(window: MainWindow, part: str) -> None:
    window.parts.header.show_subject(HTML)
    window.parts.kv.set_model(HTML)
    window.parts.log.begin(Path(HTML))
    tips = {
        "subject": window.parts.header.subject,
        "read": window.parts.kv.read,
        "log": window.parts.log.view,
    }
    assert "<b>" not in tips[part].toolTip()
    assert "&lt;b&gt;" in tips[part].toolTip()


def test_a_plain_tip_stays_as_it_is(qtbot: QtBot) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    set_plain_tip(label, "a & b")
    assert label.toolTip() == "a & b"
