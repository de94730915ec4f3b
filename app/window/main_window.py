"""The main window: it assembles panels in docks, has the menus, and remembers its layout."""

import os
import signal
from pathlib import Path

from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QGridLayout,
    QMainWindow,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.panels.export_dialog import ExportDialog
from app.places import Places
from app.window.controller import Controller
from app.window.enabling import Enabled
from app.window.errands import Errands
from app.window.menus import add_action, add_choices
from app.window.parts import Parts, make_parts
from app.window.presenter import DEFAULT_SPAN_S
from app.window.theme import Scheme, apply_theme, theme_for
from measurements.run_folder.reader import list_runs

_LAYOUT_VERSION = 1
_NICENESS = 10
_LEFT, _RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
_BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea
_SIDE_WIDTH = 300
_SCHEMES = (("As the system", Scheme.SYSTEM), ("Light", Scheme.LIGHT), ("Dark", Scheme.DARK))
_SPANS = (("Last 2 minutes", DEFAULT_SPAN_S), ("Last 10 minutes", 600.0), ("Whole run", None))


class MainWindow(QMainWindow):
    """Docks around four charts."""

    def __init__(self, places: Places, errands: Errands | None = None) -> None:
        super().__init__()
        self.setWindowTitle("Latency Lab")
        self.setObjectName("main")
        self._places = places
        self._settings = QSettings()
        self._may_close = False
        self.scheme = _remembered_scheme(self._settings)
        self.parts: Parts = make_parts(places)
        self.controller = Controller(places, self.parts, errands or Errands())
        self.docks: dict[str, QDockWidget] = {}
        self._dialog: ExportDialog | None = None
        self._assemble()
        self._add_menus()
        self._connect()
        self._default_layout = self.saveState(_LAYOUT_VERSION)
        self._restore_layout()
        self.apply_theme()
        self.controller.start()

    def apply_theme(self) -> None:
        """Take the colours of the chosen scheme."""
        theme = theme_for(self.scheme)
        apply_theme(QApplication.instance(), theme)
        for chart in self.parts.charts:
            chart.apply_theme(theme)
        self.controller.presenter.begin()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Stop run and engine first; the window goes when they are down."""
        if self._may_close:
            event.accept()
            return
        event.ignore()
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("layout", self.saveState(_LAYOUT_VERSION))
        self.setWindowTitle("Latency Lab: stopping…")
        self.controller.close()

    def _assemble(self) -> None:
        centre = QWidget()
        grid = QGridLayout(centre)
        grid.setContentsMargins(2, 0, 2, 2)
        grid.setSpacing(8)
        for place, chart in enumerate(self.parts.charts):
            grid.addWidget(chart, place // 2, place % 2)
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(centre)
        self.setCentralWidget(whole)
        self.setMenuWidget(self._top())
        self.setStatusBar(self.parts.status)
        self.setCorner(Qt.Corner.BottomLeftCorner, _LEFT)
        self.setCorner(Qt.Corner.BottomRightCorner, _RIGHT)
        self.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks | QMainWindow.DockOption.AllowNestedDocks
        )
        self.setTabPosition(_RIGHT, QTabWidget.TabPosition.North)
        self._add_docks()
        self.resize(1440, 900)

    def _top(self) -> QWidget:
        """Return menu bar and header, one above the other."""
        top = QWidget()
        layout = QVBoxLayout(top)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self._menu_bar = self.menuBar()
        layout.addWidget(self._menu_bar)
        layout.addWidget(self.parts.header)
        return top

    def _add_docks(self) -> None:
        for name, title, panel, area in (
            ("engine", "Engine", self.parts.engine, _LEFT),
            ("load", "Load", self.parts.load, _LEFT),
            ("log", "Engine log", self.parts.log, _BOTTOM),
            ("numbers", "Numbers", self.parts.numbers, _RIGHT),
            ("streams", "Streams", self.parts.streams, _RIGHT),
            ("kv", "KV cache", self.parts.kv, _RIGHT),
        ):
            dock = QDockWidget(title, self)
            dock.setObjectName(name)
            dock.setWidget(panel)
            self.docks[name] = dock
            self.addDockWidget(area, dock)
        self.tabifyDockWidget(self.docks["streams"], self.docks["kv"])
        self.docks["streams"].raise_()
        sides = [self.docks["engine"], self.docks["numbers"]]
        self.resizeDocks(sides, [_SIDE_WIDTH, 316], Qt.Orientation.Horizontal)
        self.resizeDocks([self.docks["log"]], [140], Qt.Orientation.Vertical)
        left = [self.docks["engine"], self.docks["load"]]
        self.resizeDocks(left, [396, 414], Qt.Orientation.Vertical)
        right = [self.docks["numbers"], self.docks["streams"]]
        self.resizeDocks(right, [290, 490], Qt.Orientation.Vertical)

    def _add_menus(self) -> None:
        bar = self._menu_bar
        file = bar.addMenu("&File")
        self.open_run = add_action(
            file, "&Open run…", "Ctrl+O", "Show a past run from its folder.", self._on_open_run
        )
        self.export = add_action(
            file, "&Export CSV…", "Ctrl+S", "Write tables of one run or several.", self._on_export
        )
        file.addSeparator()
        add_action(file, "&Quit", "Ctrl+Q", "Stop run and engine, and leave.", self._on_quit)
        self._add_doing_menus()
        view = bar.addMenu("&View")
        for dock in self.docks.values():
            view.addAction(dock.toggleViewAction())
        view.addSeparator()
        spans = view.addMenu("&Time shown")
        self.spans = add_choices(spans, _SPANS, DEFAULT_SPAN_S, self)
        colours = view.addMenu("&Colours")
        self.schemes = add_choices(colours, _SCHEMES, self.scheme, self)
        add_action(view, "&Restore the layout", "", "Put all panels back.", self._on_restore_layout)

    def _add_doing_menus(self) -> None:
        bar, parts = self._menu_bar, self.parts
        engine = bar.addMenu("&Engine")
        self.start_engine = add_action(
            engine, "&Start", "Ctrl+E", "Start the engine.", parts.engine.start.click
        )
        self.stop_engine = add_action(
            engine, "S&top", "Ctrl+Shift+E", "Stop the engine.", parts.engine.stop.click
        )
        add_action(
            engine,
            "&Copy the command line",
            "Ctrl+Shift+C",
            "Put the engine's command line on the clipboard.",
            parts.engine.copy_command_line,
        )
        run = bar.addMenu("&Run")
        self.run = add_action(run, "&Run", "Ctrl+R", "Start a run.", parts.load.run.click)
        self.stop_run = add_action(run, "&Stop", "Esc", "Stop the run.", parts.load.stop.click)
        add_action(
            run,
            "&Concurrency",
            "Ctrl+K",
            "Go to the concurrency slider.",
            parts.load.slider.setFocus,
        )

    def _connect(self) -> None:
        self.controller.closed.connect(self._on_closed)
        self.controller.changed.connect(self._on_enabled_changed)
        self.controller.span_changed.connect(self._on_span_changed)
        self.controller.exported.connect(self._on_exported)
        self.spans.triggered.connect(self._on_span_chosen)
        self.schemes.triggered.connect(self._on_scheme_chosen)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme_changed)

    def _restore_layout(self) -> None:
        geometry = self._settings.value("geometry")
        layout = self._settings.value("layout")
        if geometry is not None:
            self.restoreGeometry(geometry)
        if layout is not None:
            self.restoreState(layout, _LAYOUT_VERSION)

    def _on_closed(self) -> None:
        self._may_close = True
        self.close()

    def _on_quit(self) -> None:
        self.close()

    def _on_enabled_changed(self, state: Enabled) -> None:
        self.open_run.setEnabled(state.open_run)
        self.export.setEnabled(state.export)
        self.start_engine.setEnabled(state.start_engine)
        self.stop_engine.setEnabled(state.stop_engine)
        self.run.setEnabled(state.run)
        self.stop_run.setEnabled(state.stop_run)

    def _on_open_run(self) -> None:
        folder = QFileDialog.getExistingDirectory(
            self, "Choose a run's folder", str(self._places.runs)
        )
        if folder:
            self.controller.open_run(Path(folder))

    def _on_export(self) -> None:
        current = self.controller.folder
        runs = list_runs(self._places.runs)
        if current is not None and current.parent != self._places.runs:
            runs += [run for run in list_runs(current.parent) if run.folder == current]
        self._dialog = ExportDialog(runs, current, self)
        self._dialog.export_asked.connect(self.controller.export)
        self._dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._dialog.destroyed.connect(self._on_dialog_gone)
        self._dialog.open()

    def _on_dialog_gone(self) -> None:
        self._dialog = None

    def _on_exported(self, sentence: str, done: bool) -> None:
        if self._dialog is not None:
            self._dialog.show_outcome(sentence, done=done)
        else:
            self.parts.status.showMessage(sentence, 10_000)

    def _on_span_chosen(self, action: QAction) -> None:
        self.controller.presenter.span_s = action.data()
        self.controller.presenter.begin()

    def _on_span_changed(self, span_s: float | None) -> None:
        for action in self.spans.actions():
            action.setChecked(action.data() == span_s)

    def _on_scheme_chosen(self, action: QAction) -> None:
        self.scheme = Scheme(action.data())
        self._settings.setValue("scheme", str(self.scheme))
        self.apply_theme()

    def _on_system_scheme_changed(self) -> None:
        if self.scheme is Scheme.SYSTEM:
            self.apply_theme()

    def _on_restore_layout(self) -> None:
        self.restoreState(self._default_layout, _LAYOUT_VERSION)


def _remembered_scheme(settings: QSettings) -> Scheme:
    stored = str(settings.value("scheme", Scheme.SYSTEM))
    return Scheme(stored) if stored in set(Scheme) else Scheme.SYSTEM


def make_application() -> QApplication:
    """Return the application with its name, under which settings are kept."""
    app = QApplication.instance() or QApplication(["latency-lab"])
    app.setApplicationName("Latency Lab")
    app.setOrganizationName("Latency Lab")
    app.setDesktopFileName("latency-lab")
    return app


def run_window(places: Places) -> int:
    """Open the window and return the exit code once it is closed."""
    app = make_application()
    errands = Errands()  # before the niceness: engines and workers are started from there
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    window = MainWindow(places, errands)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _Closer(window).on_signal)
    window.show()
    return app.exec()


class _Closer:
    """Closes the window in the orderly way when the terminal or the system asks to end."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def on_signal(self, _number: int, _frame: object) -> None:
        """Python calls this between two steps of the timer's slot."""
        self._window.close()
