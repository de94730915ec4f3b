"""What goes to the terminal: results to stdout, progress to stderr, neither ever a traceback."""

import contextlib
import io
import os
import shutil
import sys
import time
from typing import TextIO

SPARSE_S = 15.0  # seconds between two progress lines where nobody watches a terminal


def emit(text: str) -> None:
    """Write a result to stdout."""
    if sys.stdout is not None and text:
        with contextlib.suppress(BrokenPipeError):  # settle_stdout sees to it
            sys.stdout.write(text if text.endswith("\n") else text + "\n")


def settle_stdout() -> None:
    """Flush stdout; a reader that has left, as `head` does, is no error."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain then.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(sentence: str) -> None:
    """Write a sentence to stderr."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{sentence}\n")


def tolerate_any_encoding() -> None:
    """Let a terminal that lacks a character show '?' instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


class Progress:
    """Progress on stderr: one line that updates on a terminal, a line now and then elsewhere."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._watched = stream is not None and stream.isatty()
        self._shown = ("", "")
        self._shown_at = -SPARSE_S

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._write(f"\r\x1b[K{text}\n" if self._watched else f"{text}\n")

    def update(self, step: str, figures: str) -> None:
        """Show a step and its figures; where nobody watches only when the step is new or old."""
        now = time.monotonic()
        if self._watched:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{f'{step}  {figures}'[:width]}")
        elif step != self._shown[0] or now - self._shown_at >= SPARSE_S:
            self._write(f"{step}  {figures}\n")
            self._shown_at = now
        self._shown = (step, figures)

    def clear(self) -> None:
        """Take the updating line away."""
        if self._watched:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            # The terminal may be gone while the measurement goes on.
            with contextlib.suppress(OSError):
                self._stream.write(text)
                self._stream.flush()
