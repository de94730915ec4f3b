"""Scripted byte streams → a run folder, through the real decoder and the real writer."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fakes.streams import MS, SENT_NS, Played

from measurements.reply import Ending, Figures, Status
from measurements.run_folder.reader import Run, read
from measurements.run_folder.writer import Ended, Sent, Writer


@dataclass(frozen=True)
class Reply:
    """A reply as it was played, and how its request was sent."""

    played: Played
    after_ms: float = 0  # since the first reply was sent
    connect_ms: float | None = None
    warmup: bool = False


REFUSED = Played([], Ending(Status.REFUSED, "no connection"), Figures(), None, False, [])


def logged(folder: Path, replies: Iterable[Reply]) -> Run:
    """Log replies as the worker does and read the folder."""
    folder.mkdir()
    for number, reply in enumerate(replies):
        if not number:
            writer = Writer(folder, SENT_NS - 1000 * MS)
        _log(writer, number, reply)
    writer.close()
    (folder / "run.json").write_text('{"format_version": 1, "state": "done"}', encoding="utf-8")
    return read(folder)


def _log(writer: Writer, number: int, reply: Reply) -> None:
    played, later = reply.played, round(reply.after_ms * MS)
    sent_ns = SENT_NS + later
    about = {"request_id": number, "planned_ns": sent_ns, "concurrency": 1}
    about |= {"warmup": reply.warmup, "prompt_id": "p"}
    refused = played.ending is not None and played.ending.status is Status.REFUSED
    if not refused:
        writer.sent(Sent(sent_ns=sent_ns, **about))
    writer.tokens(number, sent_ns, [t._replace(at_ns=t.at_ns + later) for t in played.tokens])
    writer.notices(number, sent_ns, [n._replace(at_ns=n.at_ns + later) for n in played.notices])
    connect_ns = None if reply.connect_ms is None else round(reply.connect_ms * MS)
    writer.ended(
        Ended(
            sent_ns=None if refused else sent_ns,
            connect_ns=connect_ns,
            figures=played.figures,
            ending=played.ending,
            http_status=played.http_status,
            **about,
        )
    )
