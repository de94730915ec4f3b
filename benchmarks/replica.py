"""The lab and `vllm bench serve` on one replica of real vLLM, with the same requests.

    .venv/bin/python -m benchmarks.replica [--passes 3] [--concurrency 1,8] [--model PATH]

One after the other, several times. Here nobody knows the truth, so the engine's own means stand
beside what both clients report. `vllm bench serve` runs twice: as it is, and at the real-time
priority that the lab's worker takes, since an engine on the CPU keeps others off the processor.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.places import find_places
from app.session import RunSession
from benchmarks.arrivals import vllm_bench
from engine_launcher.engine import Engine
from engine_launcher.preflight import Refusal
from engine_launcher.settings import EngineSettings, EngineView
from engine_launcher.states import EngineState
from measurements import prompts
from measurements.plan import Load, Plan, Prompts, Target
from measurements.run_folder.reader import read
from measurements.summary import Summary, summarize

TOKENS = 64
_POLL_S = 0.2
_REPLIES = 12  # at concurrency 1; elsewhere two a stream


class Means(NamedTuple):
    """What a client reported, in seconds."""

    ttft_s: float
    itl_s: float


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What both reported of the same requests; means in seconds."""

    concurrency: int
    lab: Summary
    vllm: Means
    vllm_real_time: Means


def main() -> int:
    """Start the engine, measure in turn, print the table, stop the engine."""
    parser = argparse.ArgumentParser(prog="benchmarks.replica")
    parser.add_argument("--passes", type=int, default=3, metavar="N")
    parser.add_argument("--concurrency", default="1,8", metavar="LIST")
    parser.add_argument("--model", type=Path, default=find_places().default_model, metavar="PATH")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    levels = [int(word) for word in options.concurrency.split(",")] * options.passes
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder, "engines"))
        try:
            view = _start(engine, options.model, options.port)
            passes = [_pass(view, level, Path(folder)) for level in levels]
        except (Refusal, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            engine.close()
    print("\n".join(table(passes)))
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


def _pass(view: EngineView, concurrency: int, folder: Path) -> Pass:
    """Let both clients send the same prompts, the lab first."""
    here = Path(tempfile.mkdtemp(dir=folder))
    texts = [prompt.content for prompt in prompts.load("short")]
    texts = (texts * concurrency)[: max(_REPLIES, 2 * concurrency)]
    lab = _lab(view, concurrency, texts, here)
    load = {
        "base_url": view.base_url.removesuffix("/v1"),
        "model": view.served_model,
        "concurrency": concurrency,
        "requests": len(texts),
        "tokens": TOKENS,
        "tokenizer": view.settings.model,
        "prompts": texts,
    }
    return Pass(
        concurrency=concurrency,
        lab=lab,
        vllm=_vllm(load, here / "normal.json"),
        vllm_real_time=_vllm({**load, "real_time": True}, here / "real-time.json"),
    )


def _vllm(load: dict[str, Any], result: Path) -> Means:
    vllm_bench.run_client([{**load, "result": str(result)}], result.parent)
    document = json.loads(result.read_text(encoding="utf-8"))
    if any(document["errors"]):
        raise ValueError(f"vllm bench serve failed: {max(document['errors'])[-500:]}")
    itls = np.concatenate(document["itls"])
    return Means(float(np.mean(document["ttfts"])), float(itls.mean()))


def _lab(view: EngineView, concurrency: int, texts: list[str], folder: Path) -> Summary:
    source = folder / "prompts.jsonl"
    source.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts), "utf-8")
    load = Load(
        concurrency=concurrency,
        requests=len(texts),
        max_tokens=TOKENS,
        temperature=0.0,
        ignore_eos=True,
    )
    plan = Plan(
        target=Target(base_url=view.base_url, served_model=view.served_model, api="completions"),
        load=load,
        prompts=Prompts(source=str(source), unique_prefix=False),
        checkpoint=view.checkpoint,
    )
    session = RunSession.start(plan, folder)
    while not session.poll().over:
        time.sleep(_POLL_S)
    return summarize(read(session.folder))


def table(passes: Iterable[Pass]) -> Iterator[str]:
    """Yield a Markdown table, a line a pass, with the engine's own means in the middle."""
    header = ["streams"]
    for name in ("TTFT", "ITL"):
        header += [f"{name} lab, ms", "engine", "vllm", "vllm, real-time", ": lab"]
    yield _line(header)
    yield _line(["---"] * len(header))
    for each in passes:
        lab, others = each.lab, (each.vllm, each.vllm_real_time)
        ttft = (lab.ttft.mean, lab.engine_ttft_mean_s, *(other.ttft_s for other in others))
        itl = (lab.itl.mean, lab.engine_itl_mean_s, *(other.itl_s for other in others))
        yield _line([str(each.concurrency), *_cells(*ttft), *_cells(*itl)])


def _cells(lab_s: float | None, *others_s: float | None) -> list[str]:
    """Return the means in ms, and how the last of them compares with the lab's."""
    told = ["" if value is None else f"{value * 1e3:.2f}" for value in (lab_s, *others_s)]
    last = others_s[-1]
    return [*told, f"{last / lab_s:.3f}" if lab_s and last is not None else ""]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
