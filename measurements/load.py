"""The load: streams of requests, at most so many at once, each sent when it is due.

In a closed loop a request is due when a stream is free, in an open one when its schedule says so
(`arrivals.py`); nothing else differs. Callbacks only: the next request of a stream leaves in the
same moment in which the last one's end was read.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from time import monotonic_ns
from typing import NamedTuple

from measurements import plan
from measurements.arrivals import Arrivals, AtOnce, arrivals
from measurements.client_watch import ClientWatch
from measurements.connection import Connection, Read, words
from measurements.exchange import Exchange, Limits, Sink
from measurements.no_room import no_room
from measurements.patience import Patience
from measurements.pool import Pool
from measurements.prepare import Prepared, Stock
from measurements.pump import Pump
from measurements.reply import Ending, Figures, Notice, Reply, Status, Token
from measurements.run_folder.writer import Ended, Sent, Writer
from measurements.states import RunState, step

_SENDING = frozenset({RunState.WARMING_UP, RunState.MEASURING})
_NO_PROMPT = Prepared("", b"")  # of a request whose turn never came


def problem(settings: plan.Load) -> str:
    """Return what is wrong with the load that is asked for, in one sentence; empty if nothing."""
    limits = (
        (1 <= settings.concurrency <= plan.MAX_CONCURRENCY, "The concurrency", "from 1 to 256"),
        (
            settings.requests is None or settings.requests > 0,
            "The number of requests",
            "at least 1",
        ),
        (
            settings.rate is None or 0 < settings.rate <= plan.MAX_RATE,
            "The rate",
            f"more than 0 and at most {plan.MAX_RATE:,.0f} requests/s",
        ),
        (settings.duration_s is None or settings.duration_s > 0, "The duration", "more than 0 s"),
        (settings.warmup >= 0, "The number of warm-up requests", "at least 0"),
        (settings.max_tokens > 0, "The number of tokens", "at least 1"),
        (settings.temperature >= 0, "The temperature", "at least 0"),
        (settings.timeout_s > 0 and settings.idle_timeout_s > 0, "A time limit", "more than 0 s"),
    )
    wrong = [f"{what} has to be {limit}." for right, what, limit in limits if not right]
    return " ".join(wrong)


class Ticket(NamedTuple):
    """A request that a stream is about to send."""

    request_id: int
    warmup: bool
    planned_ns: int  # when it was due
    concurrency: int
    prepared: Prepared


@dataclass(frozen=True)
class Flight:
    """A request in flight."""

    ticket: Ticket
    connection: Connection
    connect_ns: int | None
    exchange: Exchange


@dataclass(frozen=True)
class Tools:
    """What a load works with."""

    pool: Pool
    stock: Stock
    writer: Writer
    pump: Pump
    watch: ClientWatch


class Load:
    """One run's load and its state machine. `over` is done when nothing follows."""

    def __init__(self, settings: plan.Load, tools: Tools) -> None:
        self.state = RunState.IDLE
        self.target = settings.concurrency
        self.ended_by = ""
        self.sentence = ""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settings = settings
        self._limits = Limits(round(settings.timeout_s * 1e9), round(settings.idle_timeout_s * 1e9))
        self._tools = tools
        self._patience = Patience()
        self._flights: dict[int, Flight] = {}
        self._opening: dict[Ticket, asyncio.Task[None]] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._resting: list[int] = []  # until when (ns) each resting stream rests
        self._issued = {True: 0, False: 0}  # requests, by whether they are warm-up
        self._arrivals: Arrivals = AtOnce()  # also of the warm-up of an open loop
        self._alarm: asyncio.TimerHandle | None = None  # rings when the next request is due
        self._ends_ns: int | None = None  # no more is sent from then on
        self._last_row: tuple[RunState, int, bool] | None = None

    @property
    def in_flight(self) -> int:
        """Return how many requests are sent and have not ended."""
        return len(self._flights)

    def start(self) -> None:
        """Begin to send."""
        if self._settings.warmup > 0:
            self._go(RunState.WARMING_UP)
            self._fill()
        else:
            self._connect_and_measure()

    def set_concurrency(self, target: int) -> None:
        """Aim at `target` streams from now on: more start at once, surplus ones run out."""
        self.target = max(1, min(target, plan.MAX_CONCURRENCY))
        self._note_load()
        self._fill()

    def stop(self) -> None:
        """End the run as asked: nothing more is sent, what is in flight is cancelled."""
        if self.state is RunState.IDLE:
            self.abort("hand", "stopped by hand")
        if self.state in _SENDING:
            self._go(RunState.DRAINING)
        self._finish(RunState.DONE, "hand", "stopped by hand")

    def abort(self, ended_by: str, reason: str) -> None:
        """End the run because nobody is there to want it."""
        self._finish(RunState.ABORTED, ended_by, reason)

    def fail(self, sentence: str) -> None:
        """End the run because it cannot go on."""
        if not self.state.over:
            self.sentence = sentence
        self._finish(RunState.FAILED, "failure", "the run failed")

    def tick(self) -> None:
        """Look after time limits and rests, and build requests ahead; called every 20 ms."""
        now_ns = monotonic_ns()
        for flight in tuple(self._flights.values()):
            flight.exchange.check(now_ns)
            if flight.exchange.ending is not None:
                self._landed(flight)
        self._resting = [until_ns for until_ns in self._resting if until_ns > now_ns]
        if self._time_is_up(now_ns):
            self._go_on()
        self._fill()
        self._build_ahead()

    def _connect_and_measure(self) -> None:
        """Open the connections first: then the target is in flight as soon as requests can be."""
        self._connecting = asyncio.get_running_loop().create_task(self._measure_when_connected())
        self._connecting.add_done_callback(_raise_fault)

    async def _measure_when_connected(self) -> None:
        closed_loop = self._settings.rate is None
        await self._tools.pool.stand_by(self.target if closed_loop else 1)
        self._begin_measuring()
        self._fill()

    def _begin_measuring(self) -> None:
        now_ns = monotonic_ns()
        self._arrivals = arrivals(self._settings, now_ns)
        if self._settings.duration_s is not None:
            self._ends_ns = now_ns + round(self._settings.duration_s * 1e9)
        self._go(RunState.MEASURING)

    def _build_ahead(self) -> None:
        if self.state in _SENDING and self._tools.stock.top_up(self.target):
            self._tools.pump.post(self._build_ahead)

    def _fill(self) -> None:
        """Start one stream if one is wanted, and come back for the next one after the next poll."""
        now_ns = monotonic_ns()
        if self._has_room(now_ns):
            wait_ns = self._arrivals.due_ns(now_ns) - now_ns
            if wait_ns > 0:
                self._set_alarm(wait_ns)
            elif self._patience.may_try(now_ns):
                self._start_one(now_ns)
                self._tools.pump.post(self._fill)
        self._note_load()

    def _has_room(self, now_ns: int) -> bool:
        busy = len(self._flights) + len(self._opening) + len(self._resting)
        return self.state in _SENDING and busy < self.target and not self._all_issued(now_ns)

    def _set_alarm(self, wait_ns: int) -> None:
        if self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(wait_ns / 1e9, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._tools.pump.post(self._fill)

    def _all_issued(self, now_ns: int) -> bool:
        if self.state is RunState.WARMING_UP:
            return self._issued[True] >= self._settings.warmup
        return self._count_is_reached() or self._time_is_up(now_ns)

    def _count_is_reached(self) -> bool:
        wanted = self._settings.requests
        return wanted is not None and self._issued[False] >= wanted

    def _time_is_up(self, now_ns: int) -> bool:
        return self._ends_ns is not None and now_ns >= self._ends_ns

    def _start_one(self, now_ns: int) -> None:
        ticket = self._issue(now_ns, self._tools.stock.take())
        connection = self._tools.pool.take()
        if connection is not None:
            self._send(ticket, connection, connection.connect_ns or None)
            return
        task = asyncio.get_running_loop().create_task(self._open_and_send(ticket))
        self._opening[ticket] = task
        task.add_done_callback(_raise_fault)

    def _issue(self, now_ns: int, prepared: Prepared) -> Ticket:
        warmup = self.state is RunState.WARMING_UP
        request_id = sum(self._issued.values())
        self._issued[warmup] += 1
        planned_ns = self._arrivals.take(now_ns)
        return Ticket(request_id, warmup, planned_ns, self.target, prepared)

    async def _open_and_send(self, ticket: Ticket) -> None:
        try:
            connection = await self._tools.pool.open()
        except OSError as error:
            del self._opening[ticket]
            self._refused(ticket, error)
        else:
            del self._opening[ticket]
            self._send(ticket, connection, connection.connect_ns)

    def _send(self, ticket: Ticket, connection: Connection, connect_ns: int | None) -> None:
        reply = Reply()
        sink = Sink(
            partial(self._tokens, ticket.request_id, reply),
            partial(self._notices, ticket.request_id, reply),
        )
        flight = Flight(ticket, connection, connect_ns, Exchange(self._limits, sink, reply))
        connection.receiver = partial(self._received, flight)
        self._flights[ticket.request_id] = flight
        reply.sent_ns = sent_ns = monotonic_ns()
        connection.send(ticket.prepared.payload)
        self._tools.writer.sent(
            Sent(
                request_id=ticket.request_id,
                planned_ns=ticket.planned_ns,
                sent_ns=sent_ns,
                concurrency=ticket.concurrency,
                warmup=ticket.warmup,
                prompt_id=ticket.prepared.prompt_id,
            )
        )
        self._note_load()

    def _tokens(self, request_id: int, reply: Reply, tokens: list[Token]) -> None:
        self._tools.watch.note_chunks(len(tokens))
        self._tools.writer.tokens(request_id, reply.sent_ns, tokens)

    def _notices(self, request_id: int, reply: Reply, notices: list[Notice]) -> None:
        self._tools.writer.notices(request_id, reply.sent_ns, notices)

    def _received(self, flight: Flight, read: Read) -> None:
        self._tools.watch.note_lag(read.lag_ns)
        flight.exchange.receive(read)
        if flight.exchange.ending is not None:
            self._landed(flight)

    def _landed(self, flight: Flight) -> None:
        """Log the end of a request, and let its stream go on or rest."""
        exchange = flight.exchange
        ending = self._log_end(flight)
        now_ns = monotonic_ns()
        self._rest(
            self._patience.note(
                ending, exchange.http_status, exchange.reply.chunks_with_text, now_ns
            ),
            now_ns,
        )
        self._go_on()

    def _log_end(self, flight: Flight) -> Ending:
        ticket, exchange = flight.ticket, flight.exchange
        del self._flights[ticket.request_id]
        self._tools.pool.give_back(flight.connection, reusable=exchange.reusable)
        ending = exchange.ending or Ending(Status.CANCELLED)
        self._log(ticket, ending, flight)
        return ending

    def _refused(self, ticket: Ticket, error: OSError) -> None:
        server = self._tools.pool.endpoint.name
        ending = Ending(Status.REFUSED, f"no connection to {server}: {words(error)}")
        self._log(ticket, ending)
        now_ns = monotonic_ns()
        self._rest(self._patience.note(ending, None, 0, now_ns), now_ns)
        self._go_on()

    def _log(self, ticket: Ticket, ending: Ending, flight: Flight | None = None) -> None:
        """Log how a request ended; without a flight it was never sent."""
        exchange = flight.exchange if flight else None
        self._tools.writer.ended(
            Ended(
                request_id=ticket.request_id,
                concurrency=ticket.concurrency,
                warmup=ticket.warmup,
                planned_ns=ticket.planned_ns,
                sent_ns=exchange.reply.sent_ns if exchange else None,
                connect_ns=flight.connect_ns if flight else None,
                figures=exchange.reply.figures(ending) if exchange else Figures(),
                ending=ending,
                http_status=exchange.http_status if exchange else None,
                prompt_id=ticket.prepared.prompt_id,
            )
        )

    def _rest(self, until_ns: int, now_ns: int) -> None:
        if until_ns > now_ns:
            self._resting.append(until_ns)

    def _go_on(self) -> None:
        """After the end of a request: next state, next request, or the end of the run."""
        if self._patience.sentence:
            self.fail(no_room(self._patience.sentence, self._settings.max_tokens))
            return
        idle = not self._flights and not self._opening
        now_ns = monotonic_ns()
        if self.state is RunState.WARMING_UP and self._all_issued(now_ns) and idle:
            self._connect_and_measure()
        # With nothing left to send, the first stream that ends begins the draining.
        if self.state is RunState.MEASURING and self._all_issued(now_ns):
            self._go(RunState.DRAINING)
        if self.state is RunState.DRAINING and idle:
            by_count = self._count_is_reached()
            self._finish(RunState.DONE, "count" if by_count else "time", "the time was over")
        else:
            self._fill()

    def _finish(self, state: RunState, ended_by: str, reason: str) -> None:
        if self.state.over:
            return
        try:
            self._cancel_all(reason)
        finally:
            self.ended_by = ended_by
            self._go(state)
            self.over.set_result(None)

    def _cancel_all(self, reason: str) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        for ticket, task in self._opening.items():
            task.cancel()
            self._log(ticket, Ending(Status.CANCELLED, reason))
        self._opening.clear()
        for flight in tuple(self._flights.values()):
            flight.exchange.cancel(reason)
            self._log_end(flight)
        self._cancel_overdue(reason)

    def _cancel_overdue(self, reason: str) -> None:
        """Log what was due and never sent: an overload must not hide a part of the load."""
        now_ns = monotonic_ns()
        until_ns = now_ns if self._ends_ns is None else min(now_ns, self._ends_ns)
        while self._arrivals.is_late(until_ns) and not self._count_is_reached():
            ending = Ending(Status.CANCELLED, f"not sent when it was due; then {reason}")
            self._log(self._issue(until_ns, _NO_PROMPT), ending)

    def _go(self, state: RunState) -> None:
        self.state = step(self.state, state)
        self._note_load()

    def _note_load(self) -> None:
        row = (self.state, self.target, self._holds())
        if row != self._last_row and self.state is not RunState.IDLE:
            self._last_row = row
            state, target, held = row
            self._tools.writer.load(monotonic_ns(), state, target, held=held)

    def _holds(self) -> bool:
        """Return whether the load is the one that was asked for: its streams, or its schedule."""
        if self._settings.rate is not None:
            return self.state is RunState.MEASURING
        return self.in_flight == self.target


def _raise_fault(task: asyncio.Task[None]) -> None:
    """Hand a fault of ours to the loop's handler, which ends the run."""
    if not task.cancelled():
        task.result()
