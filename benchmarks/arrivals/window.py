"""The lab's window as a process: attach, run, print the run's folder, close.

    python -m benchmarks.arrivals.window URL CONCURRENCY REQUESTS TOKENS FOLDER

Needs no display. It is the window that a person opens, with every chart drawn.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QSettings

from app.places import places_in
from app.window.errands import Errands
from app.window.main_window import MainWindow, make_application
from app.window.screenshots import close, spin
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState

_NICENESS = 10  # as run_window has it
_LIMIT_S = 100.0
_STEP_MS = 100


def main(words: list[str]) -> None:
    """Carry out one run in the window."""
    url, concurrency, requests, tokens, home = words
    QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, home)
    make_application()
    errands = Errands()
    os.nice(_NICENESS)
    window = MainWindow(places_in(Path(home)), errands)
    window.resize(1280, 800)
    window.show()
    attach(window, url)
    run(window, int(concurrency), int(requests), int(tokens))
    print(window.controller.folder)
    close(window)


def attach(window: MainWindow, url: str) -> None:
    """Attach to the server, and wait until that is done."""
    controller = window.controller
    controller.start_engine(EngineSettings(kind="attached", url=url, served_name=""))
    wait(lambda: controller.engine.view.state is EngineState.READY)


def run(window: MainWindow, concurrency: int, requests: int, tokens: int) -> None:
    """Run as the load panel says, to the end."""
    load, controller = window.parts.load, window.controller
    load.concurrency.setValue(concurrency)
    load.requests.setValue(requests)
    load.max_tokens.setValue(tokens)
    controller.start_run()
    wait(lambda: controller.session is not None)
    wait(lambda: controller.session is None)


def wait(met: Callable[[], bool]) -> None:
    """Let the window live until something is true."""
    deadline = time.monotonic() + _LIMIT_S
    while not met():
        if time.monotonic() > deadline:
            sys.exit("The window did not get there in time.")
        spin(_STEP_MS)


if __name__ == "__main__":
    main(sys.argv[1:])
