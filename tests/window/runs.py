"""Run folders and batches for the window's tests."""

from pathlib import Path

import numpy as np
from hand_written_runs import load_rows, stream, together, write_run

from app.charts.live_run import LiveRun
from measurements.run_folder import columns, tables
from measurements.run_folder.tail import Batch, RunTail, TextPiece

TTFT_S, GAP_S = 0.05, 0.01


def batch(text: tuple[TextPiece, ...] = (), *, more: bool = False, **rows: list[dict]) -> Batch:
    """Return a batch of these rows; columns that a row lacks are not measured."""
    made = {}
    for file, names in columns.FILES.items():
        given = rows.get(Path(file).stem, [])
        made[Path(file).stem] = {name: _column(name, given) for name in names}
    return Batch(**made, text=list(text), more=more)


def _column(name: str, rows: list[dict]) -> np.ndarray:
    if name in tables.TEXT_COLUMNS:
        return np.array([str(row.get(name, "")) for row in rows], object)
    return np.array([row.get(name, np.nan) for row in rows], float)


def steady_stream(request_id: int, sent_s: float, tokens: int = 5, **more: object) -> dict:
    """Rows of a stream with a TTFT of 50 ms and gaps of 10 ms."""
    arrivals = [(TTFT_S + GAP_S * index, 1) for index in range(tokens)]
    return stream(request_id, sent_s, arrivals, **more)


def write_steady_run(folder: Path, requests: int = 40, **record: object) -> Path:
    """Write a run of one stream after the other, the first of them as warm-up."""
    streams = [
        steady_stream(number, 0.1 * number, warmup=int(number == 0)) for number in range(requests)
    ]
    end = 0.1 * requests
    load = load_rows((0.0, "warming_up", 1, 0), (0.1, "measuring", 1, 1), (end, "draining", 1, 0))
    return write_run(folder, record=record, load=load, **together(*streams))


def read_on(run: LiveRun, folder: Path, bytes_a_poll: int = 1 << 20) -> LiveRun:
    """Feed a folder to the end, and once more: ends of requests come a batch late."""
    tail = RunTail(folder, bytes_a_poll)
    more = True
    while more:
        portion = tail.poll()
        more = portion.more
        run.feed(portion)
    run.feed(tail.poll())
    return run
