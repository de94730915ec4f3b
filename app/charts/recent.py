"""The newest requests with their streamed text, bounded in number and length."""

from dataclasses import dataclass, field, replace

import numpy as np

from measurements.run_folder.tables import Table
from measurements.run_folder.tail import TextPiece

MOST_REQUESTS = 200
WAITING, STREAMING = "waiting", "streaming"
MOST_CHARACTERS = 20_000  # of one reply


@dataclass(frozen=True, kw_only=True)
class StreamRow:
    """One request as the table shows it; None is not known yet."""

    request_id: int
    sent_s: float
    warmup: bool = False
    state: str = WAITING  # waiting, streaming, or its status once it has ended
    ttft_s: float | None = None
    tokens: float = 0.0
    last_s: float | None = None  # arrival of the newest token, since the run began

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens after the first per second since the first; None below two."""
        if self.ttft_s is None or self.last_s is None or self.tokens < 2:  # noqa: PLR2004
            return None
        streaming = self.last_s - self.sent_s - self.ttft_s
        return (self.tokens - 1) / streaming if streaming > 0 else None


@dataclass
class _Text:
    pieces: list[str] = field(default_factory=list)
    length: int = 0


class RecentRequests:
    """Rows by id, oldest first; at most `MOST_REQUESTS` are kept."""

    def __init__(self) -> None:
        self._rows: dict[int, StreamRow] = {}
        self._texts: dict[int, _Text] = {}

    def feed(self, sends: Table, tokens: Table, requests: Table, text: list[TextPiece]) -> None:
        """Take in a batch."""
        self._feed_sends(sends)
        self._feed_tokens(tokens)
        self._feed_requests(requests)
        for piece in text:
            self._add_text(piece.request_id, piece.text)

    def rows(self) -> list[StreamRow]:
        """Return the rows, newest first."""
        return list(reversed(self._rows.values()))

    def text(self, request_id: int) -> str:
        """Return the reply so far."""
        held = self._texts.get(request_id)
        if held is None:
            return ""
        held.pieces = ["".join(held.pieces)]
        return held.pieces[0]

    def _feed_sends(self, sends: Table) -> None:
        newest = slice(-MOST_REQUESTS, None)
        columns = (sends[name][newest].tolist() for name in ("request_id", "sent_s", "warmup"))
        for request_id, sent_s, warmup in zip(*columns, strict=True):
            key = int(request_id)
            self._rows[key] = StreamRow(request_id=key, sent_s=sent_s, warmup=warmup == 1)
            self._texts[key] = _Text()
        for key in list(self._rows)[: max(0, len(self._rows) - MOST_REQUESTS)]:
            del self._rows[key], self._texts[key]

    def _feed_tokens(self, tokens: Table) -> None:
        ids, places = np.unique(tokens["request_id"], return_inverse=True)
        counts = np.bincount(places, np.nan_to_num(tokens["tokens"], nan=1.0), len(ids))
        last = np.full(len(ids), -np.inf)
        np.maximum.at(last, places, tokens["arrival_s"])
        for request_id, count, last_s in zip(ids, counts, last, strict=True):
            row = self._rows.get(int(request_id))
            if row is not None:
                state = STREAMING if row.state == WAITING else row.state  # its end may come first
                tokens_now = row.tokens + float(count)
                self._rows[row.request_id] = replace(
                    row, state=state, tokens=tokens_now, last_s=float(last_s)
                )
        first = tokens["index"] == 0
        pairs = zip(tokens["request_id"][first], tokens["since_send_s"][first], strict=True)
        for request_id, since_send_s in pairs:
            row = self._rows.get(int(request_id))
            if row is not None:
                self._rows[row.request_id] = replace(row, ttft_s=float(since_send_s))

    def _feed_requests(self, requests: Table) -> None:
        for request_id, status in zip(requests["request_id"], requests["status"], strict=True):
            row = self._rows.get(int(request_id))
            if row is not None:
                self._rows[row.request_id] = replace(row, state=str(status))

    def _add_text(self, request_id: int, text: str) -> None:
        held = self._texts.get(request_id)
        if held is not None and held.length < MOST_CHARACTERS:
            held.pieces.append(text)
            held.length += len(text)
