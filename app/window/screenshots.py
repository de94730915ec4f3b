"""Pictures of the window, in both sizes and both themes, from a run folder.

    python -m app.window.screenshots RUN_FOLDER [--out docs/screenshots]

Needs no display: the window opens on Qt's offscreen platform unless QT_QPA_PLATFORM says other.
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QElapsedTimer, QEventLoop, QSettings, QTimer
from PySide6.QtGui import QGuiApplication

from app.places import find_places
from app.window.main_window import MainWindow, make_application
from app.window.theme import Scheme

_SIZES = ((1280, 800), (1920, 1080))
_SETTLE_MS = 1500  # so that numbers and texts, which come less often, have come
_CLOSE_LIMIT_MS = 15_000


def main() -> None:
    """Open the run and save the pictures."""
    parser = argparse.ArgumentParser(description="save pictures of the window")
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("--out", type=Path, default=Path("docs/screenshots"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as settings:
        QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, settings)
        make_application()
        window = MainWindow(find_places())
        take_all(window, options.run, options.out)
        close(window)


def take_all(window: MainWindow, run: Path, out: Path) -> None:
    """Save a picture for each theme and size, and one of the calculator."""
    window.show()
    window.controller.open_run(run)
    for scheme in (Scheme.DARK, Scheme.LIGHT):
        window.scheme = scheme
        window.apply_theme()
        for width, height in _SIZES:
            window.docks["streams"].raise_()
            take(window, out / f"window-{scheme}-{width}x{height}.png", width, height)
    window.docks["kv"].raise_()
    window.parts.kv.read_model()
    take(window, out / "kv-light-1280x800.png", *_SIZES[0])


def take(window: MainWindow, path: Path, width: int, height: int) -> None:
    """Give the window a size, let it settle, and save it."""
    window.resize(width, height)
    spin(_SETTLE_MS)
    window.grab().save(str(path))


def spin(milliseconds: int) -> None:
    """Let the window live for a while."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def close(window: MainWindow) -> None:
    """Close in the orderly way."""
    window.close()
    clock = QElapsedTimer()
    clock.start()
    while window.isVisible() and clock.elapsed() < _CLOSE_LIMIT_MS:
        spin(50)
    QGuiApplication.quit()


if __name__ == "__main__":
    main()
