"""Ctrl-C and TERM as a flag, looked at between two steps, so that every ending is orderly."""

import signal
import sys
import time
from types import FrameType

_SIGNALS = (
    (signal.SIGINT, signal.SIGTERM)
    if sys.platform == "win32"
    else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
)


class Interrupts:
    """Whether the person, or the system, asked the command to end. Installed for good."""

    def __init__(self) -> None:
        self.asked = False
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

    def sleep(self, seconds: float) -> None:
        """Wait so long; raise `KeyboardInterrupt` if an end was asked for."""
        self.check()
        time.sleep(seconds)
        self.check()

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if an end was asked for."""
        if self.asked:
            raise KeyboardInterrupt
