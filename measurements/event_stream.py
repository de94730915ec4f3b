"""Server-sent events: bytes in, events out. Pure; by the event-stream standard (WHATWG HTML)."""

from typing import NamedTuple

MAX_EVENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """An event that is longer than any engine's: what comes is no event stream of tokens."""


class Event(NamedTuple):
    """One event: its data, and the name of its type where the stream gives one."""

    data: bytes
    name: bytes = b""


class EventDecoder:
    """Decode one stream. Lines end with LF, CR or CRLF, wherever the reads were cut."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_name", "_size", "_tail", "_tail_size")

    def __init__(self) -> None:
        self._tail: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []
        self._name = b""
        self._tail_size = 0  # bytes
        self._size = 0  # bytes of data, with a line end each
        self._after_cr = False
        self._at_start = True

    def feed(self, received: bytes) -> list[Event]:
        """Return the events that `received` completes.

        An event that the end of the stream cuts off is dropped, as the standard wants it.
        """
        if self._is_one_event(received):
            return [Event(received[6:-2])]
        lines = self._whole_lines(received)
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data: "):
                self._add(line[6:])
            elif line:
                self._field(line)
            elif self._data:
                events.append(Event(b"\n".join(self._data), self._name))
                self._data.clear()
                self._size = 0
                self._name = b""
            else:
                self._name = b""
        self._bound()
        return events

    def _is_one_event(self, received: bytes) -> bool:
        """Whether nothing waits and this is one whole event of one line of data: the usual read."""
        waits = self._tail_size or self._data or self._name or self._after_cr or self._at_start
        return (
            not waits
            and received.find(b"\n") == len(received) - 2
            and received.startswith(b"data: ")
            and received.endswith(b"\n\n")
            and b"\r" not in received
        )

    def _whole_lines(self, received: bytes) -> list[bytes]:
        if self._after_cr and received:
            self._after_cr = False
            received = received.removeprefix(b"\n")
        if b"\r" in received:
            self._after_cr = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = received.split(b"\n")
        self._tail.append(first)
        if not others:
            self._tail_size += len(first)
            return []
        lines = [b"".join(self._tail), *others[:-1]]
        self._tail = [others[-1]]
        self._tail_size = len(others[-1])
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        return lines

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._name = value
        # Comments (no name), id, retry and unknown fields say nothing about tokens.

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + 1

    def _bound(self) -> None:
        if self._size + self._tail_size > MAX_EVENT_BYTES:
            raise EventTooLongError(
                f"one event is longer than {MAX_EVENT_BYTES // 2**20} MiB: no stream of tokens"
            )
