"""The entry point: a subcommand goes to the command line, none to the window."""

import os
import sys
from collections.abc import Mapping, Sequence

NO_DISPLAY = (
    "The window needs a display and neither DISPLAY nor WAYLAND_DISPLAY is set; "
    "'latency-lab measure' works without one."
)
_INTERRUPTED = 130
_NO_WINDOW = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the lab and return its exit code; no traceback reaches the person."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        return _command(words) if words else _window()
    except KeyboardInterrupt:
        return _INTERRUPTED


# Both imports wait for their turn: the commands must run where Qt is absent, and the window should
# not pay for argparse's modules.
def _command(words: Sequence[str]) -> int:
    from app.cli import run  # noqa: PLC0415

    return run(words)


def _window() -> int:
    sentence = _no_display(os.environ)
    if not sentence:
        try:
            from app.window.main_window import run_window  # noqa: PLC0415
        except ImportError as error:
            sentence = _no_qt(error)
    if sentence:
        print(sentence, file=sys.stderr)  # noqa: T201 - a command's own voice
        return _NO_WINDOW
    from app.places import find_places  # noqa: PLC0415

    return run_window(find_places())


def _no_display(environment: Mapping[str, str]) -> str:
    """Return a sentence where Qt would abort for want of a display, else nothing."""
    if sys.platform != "linux":
        return ""
    variables = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return "" if any(environment.get(name) for name in variables) else NO_DISPLAY


def _no_qt(error: ImportError) -> str:
    return (
        f"The window needs PySide6, pyqtgraph and their system libraries ({error}); "
        "'make run' installs them, and 'latency-lab measure' works without."
    )
