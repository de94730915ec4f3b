"""Follow a run folder while it grows: each poll gives what came since the last one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from measurements.run_folder import columns, tables
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.tables import Table

TEXT_FILE = "text.jsonl"
BYTES_A_POLL = 4 << 20  # of each file, so that a poll stays short; the rest comes with the next


class TextPiece(msgspec.Struct, frozen=True):
    """A piece of text as it came from one request."""

    request_id: int
    at_s: float  # since the run began
    kind: str  # content, reasoning, tool
    text: str


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The rows of one poll, and whether more lies ready."""

    sends: Table
    tokens: Table
    events: Table
    requests: Table
    load: Table
    client: Table
    server_metrics: Table
    text: list[TextPiece]
    damaged: int = 0  # lines that could not be read and were left out
    more: bool = False


class RunTail:
    """Remembers how far each file of a run folder was read."""

    def __init__(self, folder: Path, bytes_a_poll: int = BYTES_A_POLL) -> None:
        self._tables = {
            Path(name).stem: _CsvTail(_LineTail(folder / name, bytes_a_poll), wanted)
            for name, wanted in columns.FILES.items()
        }
        self._text = _LineTail(folder / TEXT_FILE, bytes_a_poll)

    def poll(self) -> Batch:
        """Return what came since the last poll; files that are not there yet have no rows."""
        read = {name: tail.poll() for name, tail in self._tables.items()}
        pieces, unreadable = _text_pieces(self._text.poll())
        lines = self._lines()
        return Batch(
            **{name: table for name, (table, _) in read.items()},
            text=pieces,
            damaged=unreadable + sum(d for _, d in read.values()) + sum(t.skip() for t in lines),
            more=any(tail.more for tail in lines),
        )

    def unfinished(self) -> list[str]:
        """Return the names of the files that end in the middle of a line."""
        return [tail.path.name for tail in self._lines() if tail.waiting]

    def _lines(self) -> list["_LineTail"]:
        return [*(tail.lines for tail in self._tables.values()), self._text]


@dataclass
class _LineTail:
    """Whole lines of one growing file, a bounded number of bytes at a time."""

    path: Path
    limit: int
    offset: int = 0
    waiting: int = 0  # bytes behind the offset that are no whole line yet
    more: bool = False

    def poll(self) -> bytes:
        data = self._read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        self.waiting = len(data) - len(whole)
        self.more = len(data) == self.limit
        return whole

    def _read(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return file.read(self.limit)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise RunFolderError(
                f"{self.path} cannot be read: {error.strerror or error}."
            ) from error

    def skip(self) -> int:
        """Step over a line that is longer than a poll can hold; return how many (0 or 1)."""
        if self.waiting < self.limit:
            return 0
        self.offset += self.waiting
        self.waiting = 0
        return 1


@dataclass
class _CsvTail:
    lines: _LineTail
    wanted: Sequence[str]
    header: tuple[str, ...] = field(default=())

    def poll(self) -> tuple[Table, int]:
        data = self.lines.poll()
        if data and not self.header:
            first, _, data = data.partition(b"\n")
            self.header = tuple(tables.split_line(first.decode("utf-8-sig", "replace").strip()))
        if not data:
            return tables.empty_table(self.wanted), 0
        return tables.parse(self.header, data, self.wanted)


_PIECES = msgspec.json.Decoder(TextPiece)


def _text_pieces(lines: bytes) -> tuple[list[TextPiece], int]:
    try:
        return _PIECES.decode_lines(lines), 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _sound_pieces(lines.splitlines())


def _sound_pieces(lines: list[bytes]) -> tuple[list[TextPiece], int]:
    pieces = []
    for line in lines:
        try:
            pieces.append(_PIECES.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return pieces, len(lines) - len(pieces)
