"""The clean lines of a log that grows."""

import re
from collections import deque
from pathlib import Path

KEEP = 5000  # lines
_READ_BYTES = 128 * 1024  # a poll, so that it takes no more than a few ms
_BACKLOG_BYTES = 16 * 1024 * 1024  # more than that is skipped: a view has no use for it
_LINE_BYTES = 64 * 1024  # of a line without an end

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(line: str) -> str:
    """Return what a terminal would show of a line: the last overwriting, without escape codes."""
    shown = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    return _CONTROLS.sub("", _ESCAPES.sub("", shown)).rstrip()


class LogTail:
    """Follows one log file; the file may not exist yet. Memory is bounded, the file is not cut."""

    def __init__(self, path: Path, keep: int = KEEP) -> None:
        self._path = path
        self._position = 0
        self._partial = b""
        self.lines: deque[str] = deque(maxlen=keep)  # the last `keep` whole lines

    def poll(self) -> list[str]:
        """Return the lines that were completed since the last poll, cleaned."""
        data = self._read()
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[-_LINE_BYTES:]
        new = [clean(line.decode("utf-8", "replace")) for line in whole]
        self.lines.extend(new)
        return new

    @property
    def current(self) -> str:
        """The line that is still being written: a progress bar as it stands."""
        return clean(self._partial.decode("utf-8", "ignore"))

    def view(self) -> list[str]:
        """Return the last lines, the one that is being written included."""
        return [*self.lines, self.current] if self.current else list(self.lines)

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                self._skip_backlog(file.seek(0, 2))
                file.seek(self._position)
                data = file.read(_READ_BYTES)
        except OSError:  # not there yet, or not any more
            return b""
        self._position += len(data)
        return data

    def _skip_backlog(self, size: int) -> None:
        skipped = size - self._position - _BACKLOG_BYTES
        if skipped > 0:
            self._position += skipped
            self._partial = f"[{skipped:,} bytes left out here; they are in the log file] ".encode()
