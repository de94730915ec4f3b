"""A child process that is talked to in lines and never waited for."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

_READ_BYTES = 65536


class Child:
    """Orders go to its stdin, JSON lines come from its stdout; every method returns at once."""

    def __init__(
        self,
        command: list[str],
        errors: Path,
    ) -> None:
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,  # Ctrl-C in a terminal is the app's to answer
                bufsize=0,
            )
        self._output = _descriptor(self._process.stdout)
        self._input: int | None = _descriptor(self._process.stdin)
        self._buffer = b""
        self.ended = False  # its stdout came to its end
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        """The child's pid."""
        return self._process.pid

    def send(self, line: str) -> None:
        """Send one short line; a child that has ended does not get it."""
        if self._input is not None:
            with suppress(OSError):
                os.write(self._input, f"{line}\n".encode())

    def order(self, order: dict[str, Any]) -> None:
        """Send the first line that both children wait for."""
        self.send(json.dumps(order))

    def close_input(self) -> None:
        """Let the child's stdin come to its end."""
        if self._input is not None and self._process.stdin:
            self._process.stdin.close()
            self._input = None

    def poll(self) -> list[dict[str, Any]]:
        """Return the messages that have come since the last poll."""
        while not self.ended:
            try:
                data = os.read(self._output, _READ_BYTES)
            except BlockingIOError:
                break
            self._buffer += data
            self.ended = not data
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """End the child at once; harmless where it has ended."""
        self._process.kill()
        self.release()

    def release(self) -> None:
        """Close the pipes of a child that has ended or is about to, and collect it."""
        self.close_input()
        if self._process.stdout:
            self._process.stdout.close()
        self.ended = True
        self._process.wait()


def _descriptor(pipe: Any) -> int:
    descriptor: int = pipe.fileno()
    return descriptor
