"""The KV-cache calculator: shape, length, dtype and batch to bytes, as one types."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from app.panels.forms import (
    add_row,
    button,
    card,
    choice,
    figure_label,
    fill,
    grid,
    say,
    sentence_label,
    set_plain_tip,
    set_tone,
)
from app.panels.kv_form import SHAPE_FIELDS, KvTyped, answer, plain_shape
from app.places import typed_path
from app.window.theme import mono_font, text_font
from measurements.kv.arithmetic import DTYPE_BYTES, KvLayout
from measurements.kv.config import read_config
from measurements.kv.fields import ConfigError

_DTYPES = [(f"{name} · {size} bytes" if size > 1 else f"{name} · 1 byte", name)
           for name, size in DTYPE_BYTES.items()]  # fmt: skip


class KvPanel(QWidget):
    """Holds its own little state: the fields, and a layout that was read from a model."""

    def __init__(self) -> None:
        super().__init__()
        self._model = ""
        self._layout: KvLayout | None = None
        self._make_fields()
        self._lay_out()
        for field in self._numbers.values():
            field.textEdited.connect(self._on_edited)
        for name in SHAPE_FIELDS:
            self._numbers[name].textEdited.connect(self._on_shape_edited)
        self.dtype.currentIndexChanged.connect(self._on_edited)
        self.read.clicked.connect(self.read_model)
        self._on_edited()

    def set_model(self, model: str) -> None:
        """Take the model whose config.json `read_model` would read."""
        self._model = model
        set_plain_tip(self.read, f"Fill in the shape from {model}/config.json.")

    def read_model(self) -> None:
        """Fill the form from the checkpoint's config.json."""
        folder = typed_path(self._model)
        if not _is_file(folder / "config.json"):
            self._show_error(
                f"{self._model or 'The model'} has no config.json on this disk: choose a "
                "checkpoint's folder in the engine panel."
            )
            return
        try:
            found = read_config(folder)
        except ConfigError as error:
            self._show_error(str(error))
            return
        self._take_layout(found.layout)
        index = self.dtype.findData(found.dtype)
        if index >= 0:
            self.dtype.setCurrentIndex(index)
        self._on_edited()
        notes = (f"Read from {folder.name}.", *found.assumptions)
        say(self.notes, " ".join(notes))

    def _take_layout(self, layout: KvLayout) -> None:
        shape = plain_shape(layout)
        self._layout = None if shape else layout
        for name in SHAPE_FIELDS:
            self._numbers[name].setText(shape[name] if shape else "")
            self._numbers[name].setPlaceholderText("" if shape else "by layer group")

    def _make_fields(self) -> None:
        self.layers = _number("30", "Layers that keep a KV cache.")
        self.kv_heads = _number("3", "KV heads of a layer; with tensor parallel, of one rank.")
        self.head_dim = _number("64", "Elements of one head's key, and of its value.")
        self.tokens = _number("2048", "Sequence length, prompt and reply together, in tokens.")
        self.batch = _number("1", "Sequences of this length that are kept at once.")
        self.dtype = choice(_DTYPES, "Number format of the cache, with bytes per element.")
        self.dtype.setCurrentIndex(self.dtype.findData("bf16"))
        self._numbers = {
            "layers": self.layers,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "tokens": self.tokens,
            "batch": self.batch,
        }
        self.read = button("Read from the model", "Fill in the shape from the model's config.json.")
        self.total = figure_label()
        self.total.setFont(text_font(13.0, bold=True))
        self.total.setToolTip("The KV cache in bytes.")
        set_tone(self.total, "accent")
        self.gib = figure_label()
        self.gib.setToolTip("The same in GiB: 2^30 bytes.")
        self.formula = sentence_label("off")
        self.formula.setFont(mono_font(8.5))
        self.formula.setToolTip("The arithmetic: 2 is for K and V.")
        self.error = sentence_label("bad")
        self.notes = sentence_label("off")
        for label in (self.total, self.gib):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def _lay_out(self) -> None:
        frame, layout = card()
        form = grid()
        add_row(form, "Layers", self.layers)
        add_row(form, "KV heads", self.kv_heads)
        add_row(form, "Head dim", self.head_dim)
        add_row(form, "Sequence length", self.tokens)
        add_row(form, "Batch", self.batch)
        add_row(form, "Dtype", self.dtype)
        layout.addLayout(form)
        layout.addWidget(self.read)
        for widget in (self.total, self.gib, self.formula, self.error, self.notes):
            layout.addWidget(widget)
        layout.addStretch(1)
        fill(self, frame)

    def _on_edited(self) -> None:
        texts = {name: field.text() for name, field in self._numbers.items()}
        found = answer(KvTyped(**texts, dtype=self.dtype.currentData(), layout=self._layout))
        self.total.setText(found.bytes_text)
        self.gib.setText(found.gib_text)
        say(self.formula, found.formula)
        say(self.error, found.sentence)

    def _on_shape_edited(self) -> None:
        self._layout = None
        say(self.notes, "")
        self._on_edited()

    def _show_error(self, sentence: str) -> None:
        say(self.error, sentence)


def _number(value: str, tip: str) -> QLineEdit:
    field = QLineEdit(value)
    field.setToolTip(tip)
    field.setMaxLength(20)
    field.setMinimumWidth(60)
    return field


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, a folder that is closed to us
        return False
