"""`vllm bench serve` without its command: runs in the engine's environment, standard input tells.

Standard input is a JSON list of loads: `base_url`, `model`, `concurrency`, `requests`, `tokens`,
`tokenizer`, `result` (the file for its own results), `prompts` where they are not to be drawn at
random, `chat` for chat completions, `warmups` for requests before those that count, `real_time` for
the priority that the lab's worker takes. For each, this adds the CPU time that the benchmark itself
took to that file, as `cpu_s`.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from vllm.benchmarks import serve
from vllm.utils.argparse_utils import FlexibleArgumentParser

PREFIX = "bench-"


def arguments(load: dict) -> argparse.Namespace:
    """Return the options of `vllm bench serve` for one load."""
    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    result = Path(load["result"])
    words = {
        "--base-url": load["base_url"],
        "--model": load["model"],
        "--tokenizer": load["tokenizer"],
        "--dataset-name": "custom" if "prompts" in load else "random",
        "--random-input-len": 16,
        "--random-output-len": load["tokens"],
        "--num-prompts": load["requests"],
        "--max-concurrency": load["concurrency"],
        "--request-id-prefix": PREFIX,
        "--ready-check-timeout-sec": 0,
        "--num-warmups": load.get("warmups", 0),
        "--temperature": 0,
        "--result-dir": result.parent,
        "--result-filename": result.name,
    }
    if load.get("chat"):
        words |= {"--backend": "openai-chat", "--endpoint": "/v1/chat/completions"}
    listed = [str(word) for pair in words.items() for word in pair]
    switches = ["--disable-tqdm", "--save-result", "--save-detailed"]
    if "prompts" not in load:  # where the text is no matter, its length is
        switches.append("--ignore-eos")
    return parser.parse_args([*listed, *switches])


def run(load: dict) -> None:
    """Run one load and add its CPU time to the results."""
    if load.get("real_time"):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    if "prompts" in load:
        serve.get_samples = lambda *_: samples(load["prompts"], load["tokens"])
    cpu_s = asyncio.run(measured(arguments(load)))
    path = Path(load["result"])
    results = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**results, "cpu_s": cpu_s}), encoding="utf-8")


def samples(prompts: list[str], tokens: int) -> list[serve.SampleRequest]:
    """Return requests for these prompts, in place of a data set."""
    return [
        serve.SampleRequest(prompt, 0, tokens, request_id=f"{PREFIX}{place}")
        for place, prompt in enumerate(prompts)
    ]


async def measured(options: argparse.Namespace) -> float:
    """Run one load and return the CPU seconds of its requests, set-up left out."""
    spent: list[float] = []
    inner = serve.benchmark

    async def timed(*args: object, **more: object) -> object:
        began = time.process_time()
        found = await inner(*args, **more)
        spent.append(time.process_time() - began)
        return found

    serve.benchmark = timed
    try:
        await serve.main_async(options)
    finally:
        serve.benchmark = inner
    return spent[0]


if __name__ == "__main__":
    for each in json.load(sys.stdin):
        run(each)
