"""How the lab looks: two palettes, chart colours told apart by the colour-blind, fonts."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

_TEXT_FONTS = ("Inter", "Noto Sans", "DejaVu Sans")
_MONO_FONTS = ("JetBrains Mono", "DejaVu Sans Mono")
_POINTS = 9.5
_BIG_POINTS = 14.0
_OTHER_FONTS = 0.92


class Scheme(StrEnum):
    """What a person chose."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Theme:
    """One set of colours. Chart colours are after Okabe and Ito, fitted to the background."""

    name: str
    window: str
    card: str
    border: str
    text: str
    muted: str
    field: str
    row: str
    accent: str
    on_accent: str
    good: str
    warning: str
    bad: str
    p50: str
    p90: str
    grid: str
    fill: str  # under a line, with its own transparency
    dots: str
    heat: tuple[str, ...]  # from none to many


DARK = Theme(
    name="dark",
    window="#16191f",
    card="#1e222a",
    border="#2d323c",
    text="#e6e8ec",
    muted="#98a1b0",
    field="#15181d",
    row="#23272f",
    accent="#5b93ff",
    on_accent="#ffffff",
    good="#3ecf8e",
    warning="#f0a53a",
    bad="#ff6b6b",
    p50="#3ecf8e",
    p90="#f0a53a",
    grid="#2d323c",
    fill="#5b93ff38",
    dots="#6ea0ffa0",
    heat=("#1e222a", "#2a1a4f", "#6b2a86", "#c2446f", "#f98e52", "#fbf0a8"),
)

LIGHT = Theme(
    name="light",
    window="#f3f5f8",
    card="#ffffff",
    border="#dde1e8",
    text="#1a1f29",
    muted="#5d6675",
    field="#ffffff",
    row="#f4f6f9",
    accent="#2f6df0",
    on_accent="#ffffff",
    good="#0b8457",
    warning="#b96a00",
    bad="#d0353b",
    p50="#0b8457",
    p90="#c46a00",
    grid="#e6e9ee",
    fill="#2f6df024",
    dots="#2f6df08c",
    heat=("#ffffff", "#c9dcff", "#8ab2ff", "#4f86f7", "#1f4fb8", "#0a1f5c"),
)


def theme_for(scheme: Scheme) -> Theme:
    """Return the chosen theme, or the system's; dark where the system does not say."""
    if scheme is Scheme.SYSTEM:
        system = QGuiApplication.styleHints().colorScheme()
        return LIGHT if system is Qt.ColorScheme.Light else DARK
    return LIGHT if scheme is Scheme.LIGHT else DARK


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Set style, palette, font and style sheet of the whole application."""
    app.setStyle("Fusion")
    app.setPalette(palette_of(theme))
    app.setFont(text_font())
    app.setStyleSheet(_style_sheet(theme))


@cache
def _installed(wanted: tuple[str, ...], fallback: QFontDatabase.SystemFont) -> str:
    families = set(QFontDatabase.families())
    found = next((family for family in wanted if family in families), None)
    return found or QFontDatabase.systemFont(fallback).family()


def text_font(points: float = _POINTS, *, bold: bool = False) -> QFont:
    """Return Inter where it is installed, else the system's font, with figures of one width."""
    family = _installed(_TEXT_FONTS, QFontDatabase.SystemFont.GeneralFont)
    font = QFont(family)
    # Other fonts are wider than Inter at one size.
    font.setPointSizeF(points if family == _TEXT_FONTS[0] else points * _OTHER_FONTS)
    font.setFeature(QFont.Tag("tnum"), 1)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def big_font() -> QFont:
    """Return the font of the header's figures."""
    return text_font(_BIG_POINTS, bold=True)


def mono_font(points: float = _POINTS - 0.5) -> QFont:
    """Return the font of logs, command lines and streamed text."""
    font = QFont(_installed(_MONO_FONTS, QFontDatabase.SystemFont.FixedFont))
    font.setPointSizeF(points)
    return font


def palette_of(theme: Theme) -> QPalette:
    """Return the palette; setColorScheme would do nothing where there is no platform theme."""
    role = QPalette.ColorRole
    colours = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.field,
        role.AlternateBase: theme.row,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.card,
        role.ButtonText: theme.text,
        role.BrightText: theme.bad,
        role.ToolTipBase: theme.card,
        role.ToolTipText: theme.text,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Link: theme.accent,
        role.Mid: theme.border,
        role.Midlight: theme.row,
        role.Dark: theme.border,
        role.Light: theme.row,
    }
    palette = QPalette(QColor(theme.window))
    for name, colour in colours.items():
        palette.setColor(name, QColor(colour))
    faded = QColor(theme.muted)
    faded.setAlpha(150)
    for name in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        palette.setColor(QPalette.ColorGroup.Disabled, name, faded)
    off = QColor(theme.border)
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, off)
    return palette


def _style_sheet(theme: Theme) -> str:
    """Style cards, buttons and progress bars; inputs stay native and keep their arrows."""
    return f"""
    QFrame[card="true"] {{
        background: {theme.card}; border: 1px solid {theme.border}; border-radius: 8px;
    }}
    QLabel[muted="true"] {{ color: {theme.muted}; }}
    QLabel[tone="good"] {{ color: {theme.good}; }}
    QLabel[tone="warning"] {{ color: {theme.warning}; }}
    QLabel[tone="bad"] {{ color: {theme.bad}; }}
    QLabel[tone="accent"] {{ color: {theme.accent}; }}
    QLabel[tone="off"] {{ color: {theme.muted}; }}
    QPushButton {{
        background: {theme.card}; border: 1px solid {theme.border}; border-radius: 6px;
        padding: 4px 12px; min-height: 16px;
    }}
    QPushButton:hover {{ border-color: {theme.accent}; }}
    QPushButton:focus {{ border-color: {theme.accent}; }}
    QPushButton:pressed {{ background: {theme.row}; }}
    QPushButton:disabled {{ color: {theme.muted}; background: {theme.window}; }}
    QPushButton[role="primary"]:enabled {{
        background: {theme.accent}; border-color: {theme.accent}; color: {theme.on_accent};
        font-weight: 600;
    }}
    QPushButton[role="primary"]:enabled:hover {{ border-color: {theme.text}; }}
    QPushButton[role="primary"]:enabled:focus {{ border-color: {theme.text}; }}
    QPushButton[role="danger"]:enabled {{
        border-color: {theme.bad}; color: {theme.bad}; font-weight: 600;
    }}
    QProgressBar {{
        background: {theme.field}; border: 1px solid {theme.border}; border-radius: 4px;
        max-height: 8px; min-height: 8px;
    }}
    QProgressBar::chunk {{ background: {theme.accent}; border-radius: 3px; }}
    QDockWidget {{ font-weight: 600; }}
    QDockWidget::title {{ padding: 6px 4px 4px 6px; background: {theme.window}; }}
    QMainWindow::separator {{ width: 6px; height: 6px; background: {theme.window}; }}
    QToolTip {{
        color: {theme.text}; background: {theme.card}; border: 1px solid {theme.border};
        padding: 4px;
    }}
    QHeaderView::section {{
        background: {theme.card}; color: {theme.muted}; border: none; padding: 3px 6px;
        border-bottom: 1px solid {theme.border};
    }}
    QTabBar::tab {{
        background: transparent; color: {theme.muted}; border: none; padding: 5px 10px;
        border-bottom: 2px solid transparent;
    }}
    QTabBar::tab:selected {{ color: {theme.text}; border-bottom-color: {theme.accent}; }}
    QTabBar::tab:hover {{ color: {theme.text}; }}
    QStatusBar::item {{ border: none; }}
    QStatusBar QLabel {{ padding: 0 6px; }}
    """
