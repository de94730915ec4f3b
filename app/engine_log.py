"""The part of an engine's log that lies within a run, copied into the run's folder at its end."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LONGEST_COPY = 4 * 1024 * 1024  # bytes; of a longer part, the end


@dataclass(frozen=True)
class LogExcerpt:
    """A growing log, and how long it was (bytes) when the run began."""

    log: Path
    start: int

    @classmethod
    def begin(cls, log: Path) -> Self:
        """Note where the log stands now."""
        return cls(log, log.stat().st_size if log.is_file() else 0)

    def copy_to(self, folder: Path) -> None:
        """Write `folder/engine.log`; a log or a folder that is gone leaves the run as it is."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self.start, end - LONGEST_COPY))
            (folder / "engine.log").write_bytes(log.read(LONGEST_COPY))
