"""`vllm bench serve` beside the lab: its own detailed results against the same kind of server."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrivals import truth
from benchmarks.arrivals.cases import TOKENS, Case, Result
from benchmarks.arrivals.server import Server
from benchmarks.arrivals.truth import Reported
from engine_launcher.environments import find_engine

_CLIENT = Path(__file__).with_name("vllm_client.py")
_LOG = "vllm.log"
_LIMIT_S = 400.0


def python() -> Path | None:
    """Return the interpreter that has vLLM; None where there is none."""
    found = find_engine("vllm")
    return None if found is None else found.python


def measure(
    cases: Sequence[Case], program: Path, folder: Path, tokenizer: Path
) -> dict[Case, Result | str]:
    """Run all cases in one process, since vLLM takes longer to import than a run lasts.

    Each case has a server of its own. Where one brings nothing, its sentence stands for it.
    """
    servers: dict[Case, Server] = {}
    with contextlib.ExitStack() as stack:
        for number, case in enumerate(cases):
            log = folder / f"sends-{number}.jsonl"
            servers[case] = stack.enter_context(Server(program, log, case.schedule))
        run_client([_load(case, server, tokenizer) for case, server in servers.items()], folder)
    return {case: _result(case, server) for case, server in servers.items()}


def run_client(loads: Sequence[dict[str, Any]], folder: Path) -> None:
    """Run these loads one after the other; what the client says goes into `folder`."""
    interpreter = python()
    if interpreter is None:
        raise ValueError("There is no engine environment: run make engine.")
    with (folder / _LOG).open("w", encoding="utf-8") as log_file:
        subprocess.run(
            [interpreter, _CLIENT],
            input=json.dumps(loads),
            text=True,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT_S,
            check=False,
        )


def _load(case: Case, server: Server, tokenizer: Path) -> dict[str, Any]:
    return {
        "base_url": server.root,
        "model": "bench",
        "concurrency": case.concurrency,
        "requests": case.requests,
        "tokens": TOKENS,
        "tokenizer": str(tokenizer),
        "result": str(_result_path(server)),
    }


def _result_path(server: Server) -> Path:
    return server.log.with_suffix(".result.json")


def _result(case: Case, server: Server) -> Result | str:
    path = _result_path(server)
    if not path.is_file():
        return f"vllm bench serve brought no result: {_last_words(path.with_name(_LOG))}"
    document = json.loads(path.read_text(encoding="utf-8"))
    served = [reply for reply in server.served() if reply.tag]
    replies = reported(document)
    arrivals = np.concatenate([_arrivals(document, place) for place in range(len(replies))])
    return Result(
        errors=truth.errors(served, replies),
        offered=truth.offered(served, case.schedule),
        received_per_s=truth.rate_in_middle(arrivals),
        cpu_per_1000_tokens_s=1000 * document["cpu_s"] / arrivals.size,
    )


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing.")


def reported(document: dict[str, Any]) -> list[Reported]:
    """Return its replies; they are in the order of their requests, whose ids count up from 0."""
    pairs = zip(document["ttfts"], document["itls"], strict=True)
    return [
        Reported(f"bench-{place}", ttft, np.array(itls, dtype=np.float64))
        for place, (ttft, itls) in enumerate(pairs)
    ]


def _arrivals(document: dict[str, Any], place: int) -> np.ndarray:
    first = document["start_times"][place] + document["ttfts"][place]
    return first + np.concatenate([[0.0], np.cumsum(document["itls"][place])])
