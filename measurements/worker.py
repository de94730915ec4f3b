"""The load worker: plan in, commands on stdin, run folder out."""

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

from measurements import commands, exact_length, machine, prompts, synthetic
from measurements.client_watch import ClientWatch
from measurements.connection import SO_TIMESTAMPNS
from measurements.http1 import RequestError
from measurements.load import Load, Tools, problem
from measurements.plan import API_KEY_VARIABLE, Plan
from measurements.pool import Endpoint, EndpointError, Pool, resolve
from measurements.prepare import Prepared, Stock, Template, make_template
from measurements.priority import NORMAL, first_in_line
from measurements.pump import Pump
from measurements.run_folder.writer import Writer
from measurements.server_metrics import Scraper
from measurements.states import RunState

TICK_S = 0.02  # 50 times a second: flushes, time limits
ROW_S = 1.0  # client.csv and server_metrics.csv
METRICS_LIMIT_S = 1.0  # how long a run waits for the engine's totals before and after it
STDIN = 0


class CannotStartError(Exception):
    """Why a run cannot begin, in one sentence."""


@dataclass(frozen=True)
class Ended:
    """How a run ended; what run.json says at its end."""

    state: RunState
    ended_by: str
    sentence: str
    clock: str
    priority: str = NORMAL


def describe(plan: Plan) -> dict[str, Any]:
    """Return run.json as it is while the run has not ended."""
    return {
        "state": RunState.IDLE.value,
        "ended_by": "",
        "sentence": "",
        "started_utc": utc_now(),
        "ended_utc": None,
        "plan": plan,
        "engine": plan.engine,
        "machine": machine.describe(),
        "packages": machine.packages(),
        "clock": clock_of(plan),
        "priority": NORMAL,
        "git_revision": machine.git_revision(),
        "summary": None,
    }


def utc_now() -> str:
    """Return the wall time, a label and no more."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock_of(plan: Plan) -> str:
    """Return where this run's arrival times come from; rows say so each for itself."""
    tls = plan.target.base_url.startswith("https:")
    return "user" if tls or SO_TIMESTAMPNS is None else "kernel"


async def run(folder: Path, plan: Plan) -> Ended:
    """Carry out `plan`, appending to `folder`, and return how it ended."""
    try:
        worker = await _prepared(folder, plan)
    except CannotStartError as error:
        return Ended(RunState.FAILED, "failure", str(error), clock_of(plan))
    return await worker.work()


async def _prepared(folder: Path, plan: Plan) -> "Worker":
    """Do everything that costs time before anything is measured."""
    wrong = problem(plan.load)
    if wrong:
        raise CannotStartError(wrong)
    try:
        endpoint = await resolve(plan.target.base_url)
        source = await _prompt_source(plan)
        template = await make_template(plan, os.environ.get(API_KEY_VARIABLE))
        writer = Writer(folder, monotonic_ns(), keep_text=plan.keep_text)
    except (EndpointError, RequestError, prompts.PromptError) as error:
        raise CannotStartError(str(error)) from error
    except OSError as error:
        raise CannotStartError(_cannot_write(error)) from error
    stock = Stock(partial(_build, template, source))
    while stock.top_up(plan.load.concurrency):
        pass
    return Worker(plan, endpoint, writer, stock)


async def _prompt_source(plan: Plan) -> Iterator[prompts.Prompt]:
    if plan.prompts.tokens is None:
        return prompts.endless(prompts.load(plan.prompts.source), plan.prompts)
    recipe = await exact_length.find_recipe(plan, os.environ.get(API_KEY_VARIABLE))
    return synthetic.endless(recipe, plan.prompts)


def _build(template: Template, source: Iterator[prompts.Prompt]) -> Prepared:
    prompt = next(source)
    return Prepared(prompt.prompt_id, template.fill(prompt))


class Worker:
    """One run's parts, and the timer that keeps them going."""

    def __init__(self, plan: Plan, endpoint: Endpoint, writer: Writer, stock: Stock) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(plan)
        self._writer = writer
        self._pump = Pump(self._loop)
        self._watch = ClientWatch()
        self._pool = Pool(endpoint, self._pump)
        self._scraper = Scraper(self._pool, self._pump, writer.server_metrics)
        self._load = Load(plan.load, Tools(self._pool, stock, writer, self._pump, self._watch))
        self._priority = NORMAL
        self._next_tick_s = self._next_row_s = 0.0

    async def work(self) -> Ended:
        """Run until the load is over; everything that was logged is on disk then."""
        self._loop.set_exception_handler(self._on_fault)
        await self._scraper.answer(METRICS_LIMIT_S)
        self._listen()
        gc.collect()
        gc.freeze()  # what is alive now stays: no collection need look at it again
        self._next_tick_s = self._loop.time()
        self._next_row_s = self._next_tick_s + ROW_S
        with first_in_line() as self._priority:
            self._load.start()
            self._tick()
            await self._load.over
        self._note_client()  # since the last whole second: all there is of a run below one
        if self._load.state is RunState.DONE:
            await self._scraper.answer(METRICS_LIMIT_S)
        self._scraper.close()
        self._pool.close()
        return self._ended()

    def _listen(self) -> None:
        commands.listen(STDIN, self._on_line, self._on_app_gone)
        if sys.platform != "win32":
            self._loop.add_signal_handler(signal.SIGTERM, self._on_app_gone)

    def _on_line(self, line: bytes) -> None:
        command = commands.parse(line)
        if isinstance(command, commands.Concurrency):
            self._load.set_concurrency(command.value)
        elif isinstance(command, commands.Stop):
            self._load.stop()
        elif line.strip():
            sys.stderr.write(f"not a command: {line.decode('utf-8', 'replace')}\n")

    def _on_app_gone(self) -> None:
        self._load.abort("app gone", "the app went away")

    def _on_fault(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the run with a sentence for a fault of ours; the log has the details."""
        error = context.get("exception")
        sys.stderr.write(f"{context.get('message')}\n")
        if isinstance(error, BaseException):
            traceback.print_exception(error)
        self._load.fail(f"The lab itself failed: {error or context.get('message')}.")

    def _tick(self) -> None:
        if self._load.state.over:
            return
        late_s = self._loop.time() - self._next_tick_s
        self._watch.note_tick(round(late_s * 1e9))
        self._next_tick_s = self._loop.time() + TICK_S
        self._loop.call_at(self._next_tick_s, self._tick)
        self._pump.post(self._load.tick)
        if self._loop.time() >= self._next_row_s:
            self._next_row_s += ROW_S
            self._pump.post(self._row)
        self._pump.post(self._flush)

    def _row(self) -> None:
        self._note_client()
        self._scraper.ask()

    def _note_client(self) -> None:
        self._writer.client(monotonic_ns(), self._watch.row(self._load.in_flight))

    def _flush(self) -> None:
        try:
            self._writer.flush()
        except OSError as error:
            self._load.fail(_cannot_write(error))

    def _ended(self) -> Ended:
        load = self._load
        try:
            self._writer.close()
        except OSError as error:
            sentence = load.sentence or _cannot_write(error)
            return Ended(RunState.FAILED, "failure", sentence, self._clock, self._priority)
        return Ended(load.state, load.ended_by, load.sentence, self._clock, self._priority)


def _cannot_write(error: OSError) -> str:
    return f"The run folder cannot be written: {error.strerror or error} ({error.filename})."
