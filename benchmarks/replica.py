"""The lab and `vllm bench serve` on one replica of real vLLM, with the same requests.

    .venv/bin/python -m benchmarks.replica [--passes 3] [--concurrency 1,8] [--model PATH]

One after the other, several times, the order turned from pass to pass. Here nobody knows the
truth, so beside what a client reports stand the engine's own means over that client's requests:
where two clients differ and the engine's means differ alike, the engine was not as fast twice.
The lab's arrivals are read twice: by its own definitions, and by the other tool's, to which a chunk
without text is a token too. `vllm bench serve` runs twice: as it is, and at the real-time priority
that the lab's worker takes, since an engine on the CPU keeps others off the processor.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import numpy as np

from app.places import find_places
from app.session import RunSession
from benchmarks.arrivals import vllm_bench
from engine_launcher.engine import Engine
from engine_launcher.problems import Refusal
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements import prompts, server_metrics
from measurements.other_tools.reported import Quantity
from measurements.other_tools.tools import report
from measurements.plan import Load, Plan, Prompts, Target
from measurements.run_folder.columns import SERVER_METRICS
from measurements.run_folder.reader import read
from measurements.statistics import Figures
from measurements.summary import summarize

TOKENS = 64
WARMUPS = 2  # requests before those that count, by each client; the engine counts them too
LAB, LAB_AS_VLLM = "Latency Lab", "Latency Lab, in vllm's words"
VLLM, VLLM_REAL_TIME = "vllm bench serve", "vllm bench serve, real-time"
_POLL_S = 0.2
_REPLIES = 16  # at concurrency 1; elsewhere two a stream


class Means(NamedTuple):
    """Means in seconds; NaN where they are not told."""

    ttft_s: float
    itl_s: float


Reported = dict[str, Means]  # by client


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one client reported of one pass, and the engine of the same requests."""

    number: int  # of the pass
    client: str
    concurrency: int
    reported: Means
    engine: Means


@dataclass(frozen=True)
class Requests:
    """What every client sends in one pass."""

    view: EngineView
    concurrency: int
    texts: list[str]
    folder: Path


def main() -> int:
    """Start the engine, measure in turn, print the table, stop the engine."""
    parser = argparse.ArgumentParser(prog="benchmarks.replica")
    parser.add_argument("--passes", type=int, default=3, metavar="N")
    parser.add_argument("--concurrency", default="1,8", metavar="LIST")
    parser.add_argument("--model", type=Path, default=find_places().default_model, metavar="PATH")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    levels = [int(word) for word in options.concurrency.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder, "engines"))
        try:
            view = _start(engine, options.model, options.port)
            told = [
                each
                for level in levels
                for number in range(options.passes)
                for each in _pass(view, level, number, Path(folder))
            ]
        except (Refusal, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            engine.close()
    print("\n".join(table(told)))
    return 0


def _start(engine: Engine, model: Path, port: int) -> EngineView:
    engine.start(
        EngineSettings(model=str(model), port=port, extra_arguments="--no-enable-prefix-caching")
    )
    while (view := engine.poll()).state is EngineState.STARTING:
        time.sleep(_POLL_S)
    if view.state is not EngineState.READY:
        raise ValueError(view.sentence)
    return view


def _pass(view: EngineView, concurrency: int, number: int, folder: Path) -> list[Told]:
    """Let each client send the same prompts; another one begins in each pass."""
    texts = [prompt.content for prompt in prompts.load("short")]
    count = max(_REPLIES, 2 * concurrency)
    texts = (texts * count)[:count]
    requests = Requests(view, concurrency, texts, Path(tempfile.mkdtemp(dir=folder)))
    runs = [_lab, _vllm, _vllm_real_time]
    first = number % len(runs)
    in_turn = [*runs[first:], *runs[:first]]
    return [told for run in in_turn for told in _told(requests, number, run)]


def _told(requests: Requests, number: int, run: Callable[[Requests], Reported]) -> list[Told]:
    before = _engine_totals(requests.view)
    reported = run(requests)
    engine = _grown(before, _engine_totals(requests.view))
    return [
        Told(
            number=number,
            client=client,
            concurrency=requests.concurrency,
            reported=means,
            engine=engine,
        )
        for client, means in reported.items()
    ]


def _engine_totals(view: EngineView) -> dict[str, float]:
    page = httpx2.get(view.base_url.removesuffix("/v1") + "/metrics", trust_env=False).content
    row = server_metrics.parse(page)
    told = zip(SERVER_METRICS[1:], row, strict=True)
    return {name: float("nan") if value is None else value for name, value in told}


def _grown(before: dict[str, float], after: dict[str, float]) -> Means:
    """Return the engine's means between two readings: growth of a sum over that of its count."""

    def mean(figure: str) -> float:
        counted = after[f"{figure}_count"] - before[f"{figure}_count"]
        total_s = after[f"{figure}_sum_s"] - before[f"{figure}_sum_s"]
        return total_s / counted if counted else float("nan")

    return Means(mean("ttft"), mean("itl"))


def _vllm(requests: Requests) -> Reported:
    return {VLLM: _vllm_bench(requests, real_time=False)}


def _vllm_real_time(requests: Requests) -> Reported:
    return {VLLM_REAL_TIME: _vllm_bench(requests, real_time=True)}


def _vllm_bench(requests: Requests, *, real_time: bool) -> Means:
    view = requests.view
    result = requests.folder / f"vllm-{real_time}.json"
    load: dict[str, Any] = {
        "base_url": view.base_url.removesuffix("/v1"),
        "model": view.served_model,
        "concurrency": requests.concurrency,
        "requests": len(requests.texts),
        "warmups": WARMUPS,
        "chat": True,
        "tokens": TOKENS,
        "tokenizer": view.settings.model,
        "prompts": requests.texts,
        "real_time": real_time,
        "result": str(result),
    }
    vllm_bench.run_client([load], requests.folder)
    document = json.loads(result.read_text(encoding="utf-8"))
    if any(document["errors"]):
        raise ValueError(f"vllm bench serve failed: {max(document['errors'])[-500:]}")
    itls = np.concatenate(document["itls"])
    return Means(float(np.mean(document["ttfts"])), float(itls.mean()))


def _lab(requests: Requests) -> Reported:
    view = requests.view
    source = requests.folder / "prompts.jsonl"
    source.write_text("".join(json.dumps({"prompt": t}) + "\n" for t in requests.texts), "utf-8")
    load = Load(
        concurrency=requests.concurrency,
        requests=len(requests.texts),
        warmup=WARMUPS,
        max_tokens=TOKENS,
        temperature=0.0,
    )
    plan = Plan(
        # Usage at the end alone, as vllm bench serve asks for: the engine has the same to write.
        target=Target(base_url=view.base_url, served_model=view.served_model, usage="final"),
        load=load,
        prompts=Prompts(source=str(source), unique_prefix=False),
        checkpoint=view.checkpoint,
    )
    session = RunSession.start(plan, requests.folder)
    while not session.poll().over:
        time.sleep(_POLL_S)
    run = read(session.folder)
    summary, words = summarize(run), report(run, "vllm")
    return {
        LAB: _means(summary.ttft, summary.itl),
        LAB_AS_VLLM: _means(words.ttft, words.itl),
    }


def _means(ttft: Figures | Quantity | None, itl: Figures | Quantity | None) -> Means:
    told = [None if figure is None else figure.mean for figure in (ttft, itl)]
    return Means(*(float("nan") if mean is None else mean for mean in told))


def table(told: Iterable[Told]) -> Iterator[str]:
    """Yield a Markdown table: a line a client and pass, in the order in which they ran."""
    yield _line(["streams", "pass", "client", *_HEADER])
    yield _line(["---"] * (3 + len(_HEADER)))
    for each in told:
        where = [str(each.concurrency), str(each.number + 1), each.client]
        yield _line([*where, *_cells(each)])


_HEADER = ("TTFT, ms", "engine's", "more, ms", "ITL, ms", "engine's", "more, ms")


def _cells(told: Told) -> Iterator[str]:
    """Yield what client and engine say in ms, and by how much the client says more."""
    for reported_s, engine_s in zip(told.reported, told.engine, strict=True):
        yield from (_ms(reported_s), _ms(engine_s), _ms(reported_s - engine_s))


def _ms(seconds: float) -> str:
    return "" if np.isnan(seconds) else f"{seconds * 1e3:.2f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
