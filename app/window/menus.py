"""Menu entries as data: name, shortcut, tip."""

from collections.abc import Callable

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget


def add_action(
    menu: QMenu, text: str, shortcut: str, tip: str, slot: Callable[..., object]
) -> QAction:
    """Add an entry and return it."""
    action = QAction(text, menu)
    action.setToolTip(tip)
    action.setStatusTip(tip)
    if shortcut:
        action.setShortcut(QKeySequence(shortcut))
    action.triggered.connect(slot)
    menu.addAction(action)
    return action


def add_choices(
    menu: QMenu, choices: tuple[tuple[str, object], ...], current: object, parent: QWidget
) -> QActionGroup:
    """Add entries of which one is chosen; each carries its value as data."""
    group = QActionGroup(parent)
    for text, value in choices:
        action = QAction(text, group)
        action.setCheckable(True)
        action.setData(value)
        action.setChecked(value == current)
        menu.addAction(action)
    return group
