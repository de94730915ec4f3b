"""A load on a real server, within the test's own process, and what it has logged so far."""

import asyncio
import csv
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

from fakes.waiting import DEADLINE_S

from measurements import plan
from measurements.client_watch import ClientWatch
from measurements.load import Load, Tools
from measurements.plan import Plan, Target
from measurements.pool import Pool, resolve
from measurements.prepare import Prepared, Stock, make_template
from measurements.prompts import Prompt
from measurements.pump import Pump
from measurements.run_folder.writer import Writer


@dataclass
class Run:
    load: Load
    writer: Writer
    folder: Path

    def rows(self, name: str) -> list[dict[str, str]]:
        self.writer.flush()
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    async def over(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.load.over


@asynccontextmanager
async def running(
    folder: Path, url: str, prompt: str = "hi", **settings: Any
) -> AsyncIterator[Run]:
    """Start a load whose prompts are all `prompt`, with the worker's timer beside it."""
    loop = asyncio.get_running_loop()
    given = Plan(target=Target(base_url=url, served_model="tiny-lm"), load=plan.Load(**settings))
    payload = (await make_template(given, None)).fill(Prompt("p", prompt))
    pump = Pump(loop)
    pool = Pool(await resolve(url), pump)
    writer = Writer(folder, monotonic_ns())
    stock = Stock(partial(Prepared, "p", payload))
    load = Load(given.load, Tools(pool, stock, writer, pump, ClientWatch()))
    ticks = loop.create_task(_tick(load))
    try:
        load.start()
        yield Run(load, writer, folder)
    finally:
        ticks.cancel()
        load.stop()
        pool.close()
        await asyncio.sleep(0)
        writer.close()


async def _tick(load: Load) -> None:
    while True:
        load.tick()
        await asyncio.sleep(0.01)


def states(run: Run) -> list[str]:
    found: list[str] = []
    for row in run.rows("load.csv"):
        if not found or found[-1] != row["state"]:
            found.append(row["state"])
    return found


def script(**fields: Any) -> str:
    return json.dumps({"script": fields})
