"""Run folders written by hand, row by row, so that every figure can be computed in one's head."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from measurements.run_folder import columns

Row = Mapping[str, object]

SEND = {"warmup": 0, "worker": 0, "concurrency": 1, "prompt_id": 0, "planned_s": 0.0}
TOKEN = {"tokens": 1, "kind": "content", "burst": 1, "clock": "kernel"}
REQUEST = {
    "warmup": 0,
    "concurrency": 1,
    "status": "ok",
    "clock": "kernel",
    "client_lag_s": 0.0001,
    "finish_reason": "stop",
}


def csv_text(names: Iterable[str], rows: Iterable[Row]) -> str:
    names = tuple(names)
    lines = [",".join(names)]
    lines += [",".join(_cell(row.get(name)) for name in names) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.9f}" if isinstance(value, float) else str(value)


def write_run(folder: Path, *, record: Row | None = None, **tables: Iterable[Row]) -> Path:
    """Write run.json and every table; those that are not given have a header and no row."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, names in columns.FILES.items():
        rows = tables.get(Path(name).stem, ())
        (folder / name).write_text(csv_text(names, rows), encoding="utf-8", newline="")
    document = {"format_version": columns.FORMAT_VERSION, "state": "done", **(record or {})}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def stream(request_id: int, sent_s: float, arrivals: Iterable[tuple], **more: object) -> dict:
    """Rows of one good request: `arrivals` are (seconds since send, tokens)."""
    arrivals = list(arrivals)
    first, last = arrivals[0][0], arrivals[-1][0]
    count = sum(tokens or 0 for _, tokens in arrivals) or None
    owner = {"request_id": request_id, "sent_s": sent_s}
    settings = {key: more[key] for key in ("warmup", "concurrency") if key in more}
    return {
        "sends": [{**SEND, **owner, **settings}],
        "tokens": [
            {
                **TOKEN,
                "request_id": request_id,
                "index": index,
                "arrival_s": sent_s + since,
                "since_send_s": since,
                "tokens": tokens,
            }
            for index, (since, tokens) in enumerate(arrivals)
        ],
        "requests": [
            {
                **REQUEST,
                **owner,
                "ttft_s": first,
                "ttft_answer_s": first,
                "tpot_s": (last - first) / (count - 1) if count and count > 1 else None,
                "e2e_s": last,
                "output_tokens": count,
                **more,
            }
        ],
    }


def together(*parts: Mapping[str, list]) -> dict[str, list]:
    """Join the rows of several streams."""
    names = ("sends", "tokens", "requests")
    return {name: [row for part in parts for row in part[name]] for name in names}


def ended(request_id: int, status: str, reason: str = "", **more: object) -> dict:
    """Rows of a request that brought nothing."""
    row = {**REQUEST, "request_id": request_id, "status": status, "reason": reason, **more}
    return {
        "sends": [{**SEND, "request_id": request_id, "sent_s": 0.0}],
        "tokens": [],
        "requests": [row],
    }


def load_rows(*rows: tuple) -> list[dict]:
    """Rows of load.csv: (at_s, state, concurrency, held)."""
    return [dict(zip(columns.LOAD, row, strict=True)) for row in rows]
