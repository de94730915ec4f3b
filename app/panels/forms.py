"""Small pieces that panels are built from."""

import html
from collections.abc import Iterable

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.window.theme import text_font

MARGIN = 10  # pixels
SPACING = 6


def card() -> tuple[QFrame, QVBoxLayout]:
    """Return a card and its layout."""
    frame = QFrame()
    frame.setProperty("card", "true")
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
    layout.setSpacing(SPACING)
    return frame, layout


class _Scroll(QScrollArea):
    """Scrolls up and down alone: it is never narrower than what it holds."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the width of the content and a little height."""
        return QSize(self.widget().minimumSizeHint().width(), 80)


def fill(panel: QWidget, content: QWidget) -> None:
    """Put one widget into a panel, with a scroll bar where it does not fit."""
    area = _Scroll()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(content)
    area.viewport().setAutoFillBackground(False)
    content.setAutoFillBackground(False)
    layout = QVBoxLayout(panel)
    layout.setContentsMargins(4, 0, 4, 0)
    layout.addWidget(area)


def muted(text: str = "") -> QLabel:
    """Return a quiet label."""
    label = plain_label(text)
    label.setProperty("muted", "true")
    return label


def plain_label(text: str = "") -> QLabel:
    """Return a label that shows any text as it stands; Qt would take `<b>` for a command."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def set_plain_tip(widget: QWidget, text: str) -> None:
    """Give a tip that holds a name from outside: tips have no switch for plain text."""
    tagged = "<" in text  # without a tag Qt takes no text for HTML
    widget.setToolTip(f"<span>{html.escape(text)}</span>" if tagged else text)


def sentence_label(tone: str) -> QLabel:
    """Return a label for whole sentences; it takes no room while it is empty."""
    label = plain_label()
    label.setProperty("tone", tone)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    label.hide()
    return label


def say(label: QLabel, text: str) -> None:
    """Show a sentence, or hide the label where there is none."""
    if label.text() != text:
        label.setText(text)
    if label.isHidden() == bool(text):
        label.setVisible(bool(text))


def set_tone(label: QLabel, tone: str) -> None:
    """Colour a label by its tone; the words carry the meaning too."""
    if label.property("tone") != tone:
        label.setProperty("tone", tone)
        label.style().unpolish(label)
        label.style().polish(label)


def button(text: str, tip: str, role: str = "") -> QPushButton:
    """Return a button; `role` is primary, danger or nothing."""
    made = QPushButton(text)
    made.setToolTip(tip)
    if role:
        made.setProperty("role", role)
    made.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)
    return made


def whole_box(low: int, high: int, value: int, tip: str, suffix: str = "") -> QSpinBox:
    """Return a box for a whole number."""
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setSuffix(suffix)
    _prepare_box(box, tip)
    return box


def real_box(low: float, high: float, value: float, tip: str, suffix: str = "") -> QDoubleSpinBox:
    """Return a box for a number with a fraction."""
    box = QDoubleSpinBox()
    box.setRange(low, high)
    box.setDecimals(2)
    box.setSingleStep(0.1)
    box.setValue(value)
    box.setSuffix(suffix)
    _prepare_box(box, tip)
    return box


def choice(items: Iterable[tuple[str, object]], tip: str) -> QComboBox:
    """Return a list to choose from: what is shown, and what it stands for."""
    box = QComboBox()
    for text, value in items:
        box.addItem(text, value)
    box.setToolTip(tip)
    shrink(box)
    return box


def shrink(box: QComboBox) -> None:
    """Let a list be narrower than its longest entry."""
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(4)
    box.setMinimumWidth(58)


def grid() -> QGridLayout:
    """Return the layout of a form: quiet labels before their inputs, one pair or two a row."""
    layout = QGridLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setHorizontalSpacing(8)
    layout.setVerticalSpacing(SPACING)
    layout.setColumnStretch(1, 3)
    layout.setColumnStretch(3, 2)
    return layout


def add_row(
    layout: QGridLayout, label: str, field: QWidget, beside: QWidget | None = None
) -> QLabel:
    """Add a labelled field over the whole width, or with a widget beside it; return the label."""
    row = layout.rowCount()
    name = _label_for(label, field)
    layout.addWidget(name, row, 0)
    layout.addWidget(field, row, 1, 1, 1 if beside else 3)
    if beside:
        layout.addWidget(beside, row, 2, 1, 2)
    return name


def add_pair(
    layout: QGridLayout, left: tuple[str, QWidget], right: tuple[str, QWidget]
) -> list[QLabel]:
    """Add two labelled fields side by side; return their labels."""
    row = layout.rowCount()
    labels = []
    for column, (label, field) in ((0, left), (2, right)):
        labels.append(_label_for(label, field))
        layout.addWidget(labels[-1], row, column)
        layout.addWidget(field, row, column + 1)
    return labels


def _label_for(label: str, field: QWidget) -> QLabel:
    """Return a label that passes clicks, tip and name on to its field."""
    name = muted(label)
    name.setBuddy(field)
    name.setToolTip(field.toolTip())
    field.setAccessibleName(label.replace("&", ""))
    return name


def figure_label() -> QLabel:
    """Return a label for a figure that matters."""
    label = QLabel()
    label.setFont(text_font(10.5, bold=True))
    return label


def _prepare_box(box: QSpinBox | QDoubleSpinBox, tip: str) -> None:
    box.setToolTip(tip)
    box.setKeyboardTracking(False)
    box.setGroupSeparatorShown(False)
    box.setMinimumWidth(52)
