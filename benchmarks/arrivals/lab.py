"""One run of the lab, with its window or without, and what it reported."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.session import RunSession
from benchmarks.arrivals import truth
from benchmarks.arrivals.cases import TOKENS, Case, Result
from benchmarks.arrivals.server import Server
from benchmarks.arrivals.truth import Reported
from measurements.plan import Load, Plan, Target
from measurements.run_folder.reader import Run, read
from measurements.run_folder.tables import Table

_POLL_S = 0.2
_LIMIT_S = 120.0


def measure(case: Case, program: Path, folder: Path) -> Result:
    """Run the lab against a server of its own."""
    with Server(program, folder / "sends.jsonl", case.schedule) as server:
        run = read(_with_window(case, server, folder) if case.window else _alone(case, server))
    replies = reported(run)
    keys = {reply.key for reply in replies}
    served = [reply for reply in server.served() if reply.id in keys]
    arrivals = np.asarray(run.tokens["arrival_s"], dtype=np.float64)
    counted = np.isin(run.tokens["request_id"], _counted(run.requests)["request_id"])
    client = {name: np.asarray(run.client[name], np.float64) for name in ("at_s", "cpu_share")}
    return Result(
        errors=truth.errors(served, replies),
        offered=truth.offered(served, case.schedule),
        received_per_s=truth.rate_in_middle(arrivals[counted]),
        cpu_per_1000_tokens_s=truth.cpu_per_1000_tokens(client, arrivals),
        burst_share=float((np.asarray(run.tokens["burst"], dtype=np.float64) > 1).mean()),
    )


def _alone(case: Case, server: Server) -> Path:
    plan = Plan(
        target=Target(base_url=f"{server.root}/v1", served_model="bench"),
        load=Load(concurrency=case.concurrency, requests=case.requests, max_tokens=TOKENS),
        checkpoint="bench",
    )
    session = RunSession.start(plan, server.log.parent)
    deadline = time.monotonic() + _LIMIT_S
    while not session.poll().over and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    session.close()
    return session.folder


def _with_window(case: Case, server: Server, folder: Path) -> Path:
    """Let the window attach to the server and run; it says where the run's folder is."""
    words = (server.root, case.concurrency, case.requests, TOKENS, folder)
    command = [sys.executable, "-m", "benchmarks.arrivals.window", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    return Path(done.stdout.splitlines()[-1])


def reported(run: Run) -> list[Reported]:
    """Return the counted replies that ended well, as the run folder has them."""
    good = _counted(run.requests)
    ttfts = np.asarray(good["ttft_s"], dtype=np.float64)
    gaps = _gaps(run.tokens, good["request_id"])
    return [
        Reported(str(response).rpartition("-")[2], float(ttft), gap)
        for response, ttft, gap in zip(good["response_id"], ttfts, gaps, strict=True)
    ]


def _counted(requests: Table) -> Table:
    good = (requests["status"] == "ok") & (requests["warmup"] == 0)
    return {name: column[good] for name, column in requests.items()}


def _gaps(tokens: Table, ids: Sequence[float]) -> list[np.ndarray]:
    """Return the gaps between the arrivals of each request."""
    order = np.lexsort((tokens["index"], tokens["request_id"]))
    owners = np.asarray(tokens["request_id"], dtype=np.float64)[order]
    arrivals = np.asarray(tokens["arrival_s"], dtype=np.float64)[order]
    starts = np.searchsorted(owners, ids, side="left")
    ends = np.searchsorted(owners, ids, side="right")
    return [np.diff(arrivals[start:end]) for start, end in zip(starts, ends, strict=True)]
