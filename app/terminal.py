"""What goes to the terminal: results to stdout, progress to stderr, neither ever a traceback."""

import contextlib
import io
import os
import shutil
import sys
import time
from typing import TextIO

# What a terminal obeys rather than shows: controls but tab and line end, and marks of direction.
_OBEYED = [*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x200F]
_OBEYED += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\u{code:04x}" for code in _OBEYED}

SPARSE_S = 15.0  # seconds between two progress lines where nobody watches a terminal


def harmless(text: str) -> str:
    """Return text of a server or a file so that a terminal only shows it; JSON stays the same."""
    return text.translate(_SHOWN)


def emit(text: str) -> None:
    """Write a result to stdout."""
    if sys.stdout is not None and text:
        with contextlib.suppress(BrokenPipeError):  # settle_stdout sees to it
            sys.stdout.write(harmless(text if text.endswith("\n") else text + "\n"))


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
            sys.stderr.write(f"{harmless(sentence)}\n")


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
        text = harmless(text)
        self._write(f"\r\x1b[K{text}\n" if self._watched else f"{text}\n")

    def update(self, step: str, figures: str) -> None:
        """Show a step and its figures; where nobody watches only when the step is new or old."""
        now = time.monotonic()
        step, figures = harmless(step), harmless(figures)
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
