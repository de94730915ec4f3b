"""Progress for a person: one line a step, and what pip is at now in between."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

Say = Callable[[str], None]
_QUIET_S = 15.0
_WIDTH = 78


class InstallError(RuntimeError):
    """A step failed; the message is one sentence for a person."""


class Passing:
    """Shows what is going on: on a terminal in one line, elsewhere in a line now and then."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._last_s = time.monotonic()

    def __call__(self, text: str) -> None:
        """Show `text` in place of what was shown before."""
        now_s = time.monotonic()
        if self._terminal:
            self._stream.write(f"\r\x1b[K      {text[:_WIDTH]}")
        elif now_s - self._last_s >= _QUIET_S:
            self._last_s = now_s
            self._stream.write(f"      {text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Leave a clean line behind."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
