"""What the app tells the worker: one JSON object a line on stdin; its end means the app is gone."""

import asyncio
import os
import threading
from collections.abc import Callable

import msgspec


class Concurrency(msgspec.Struct, frozen=True, tag_field="command", tag="concurrency"):
    """Aim at this many streams from now on."""

    value: int


class Stop(msgspec.Struct, frozen=True, tag_field="command", tag="stop"):
    """Send no more, cancel what is in flight, finish."""


Command = Concurrency | Stop
_decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)


def parse(line: bytes) -> Command | None:
    """Return the command of a line, None where it is none that we know."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def listen(file: int, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Call `on_line` on this loop for each line of `file`, and `on_end` after the last.

    A thread waits in read(2), since not every kind of stdin can be polled. It holds no lock and
    costs nothing until something comes.
    """
    loop = asyncio.get_running_loop()
    thread = threading.Thread(target=_read_lines, args=(file, loop, on_line, on_end), daemon=True)
    thread.start()


def _read_lines(
    file: int,
    loop: asyncio.AbstractEventLoop,
    on_line: Callable[[bytes], None],
    on_end: Callable[[], None],
) -> None:
    rest = b""
    try:
        while data := os.read(file, 4096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                loop.call_soon_threadsafe(on_line, line)
        loop.call_soon_threadsafe(on_end)
    except OSError:
        loop.call_soon_threadsafe(on_end)
    except RuntimeError:
        return  # the loop is closed: nobody needs commands any more
