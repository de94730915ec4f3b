"""Commands on a pipe, whole lines only."""

import asyncio
import os

import pytest

from measurements.commands import Concurrency, Stop, listen, parse


def test_the_two_commands_are_read() -> None:
    assert parse(b'{"command": "concurrency", "value": 8}') == Concurrency(8)
    assert parse(b'{"command": "stop"}') == Stop()


@pytest.mark.parametrize(
    "line", [b"", b"stop", b"{}", b'{"command": "go"}', b'{"command": "concurrency"}', b"\xff",
             b'{"command": "concurrency", "value": "8"}']
)  # fmt: skip
def test_what_is_no_command_is_none(line: bytes) -> None:
    assert parse(line) is None


def test_lines_come_whole_and_the_end_is_told() -> None:
    async def test() -> list[bytes]:
        lines: list[bytes] = []
        ended = asyncio.get_running_loop().create_future()
        read, write = os.pipe()
        listen(read, lines.append, lambda: ended.set_result(None))
        for part in (b"on", b"e\ntw", b"o\nthree without an end"):
            os.write(write, part)
        os.close(write)
        async with asyncio.timeout(10):
            await ended
        os.close(read)
        return lines

    assert asyncio.run(test()) == [b"one", b"two"]
