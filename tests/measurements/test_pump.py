"""Jobs run in order, in slices, with a poll between the slices."""

import asyncio
import socket
from time import monotonic_ns

from fakes.waiting import until

from measurements.pump import BATCH_JOBS, SLICE_NS, Pump


def burn(until_ns: int) -> None:
    while monotonic_ns() < until_ns:
        pass


def burn_a_slice() -> None:
    burn(monotonic_ns() + SLICE_NS)


def test_jobs_run_in_the_order_in_which_they_were_posted() -> None:
    ran: list[int] = []

    async def post() -> None:
        pump = Pump(asyncio.get_running_loop())
        for number in range(5):
            pump.post(ran.append, number)
        await until(lambda: len(ran) == 5)

    asyncio.run(post())
    assert ran == [0, 1, 2, 3, 4]


def test_what_may_wait_runs_by_itself_and_in_its_place_before_what_is_posted_after_it() -> None:
    async def ran_alone() -> list[str]:
        ran: list[str] = []
        Pump(asyncio.get_running_loop()).defer(ran.append, "deferred")
        await until(lambda: bool(ran))
        return ran

    async def ran_before() -> list[str]:
        ran: list[str] = []
        pump = Pump(asyncio.get_running_loop())
        pump.defer(ran.append, "deferred")
        pump.post(ran.append, "posted")
        await asyncio.sleep(0)
        return ran

    assert asyncio.run(ran_alone()) == ["deferred"]
    assert asyncio.run(ran_before()) == ["deferred", "posted"]


def test_a_full_batch_does_not_wait() -> None:
    async def ran_after(count: int) -> list[int]:
        ran: list[int] = []
        pump = Pump(asyncio.get_running_loop())
        for number in range(count):
            pump.defer(ran.append, number)
        await asyncio.sleep(0)
        return ran

    assert asyncio.run(ran_after(BATCH_JOBS - 1)) == []
    assert asyncio.run(ran_after(BATCH_JOBS)) == list(range(BATCH_JOBS))


def test_a_readable_socket_is_read_before_long_work_is_done() -> None:
    events: list[str] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        pump = Pump(loop)
        here, there = socket.socketpair()
        loop.add_reader(here, lambda: events.append(f"read {here.recv(9).decode()}"))
        finished = loop.create_future()
        for number in range(5):
            pump.post(events.append, str(number))
            pump.post(burn_a_slice)
        pump.post(finished.set_result, None)
        there.send(b"x")
        await finished
        loop.remove_reader(here)
        here.close()
        there.close()

    asyncio.run(work())
    assert events.index("read x") < events.index("4")


def test_a_job_that_fails_is_reported_and_the_next_ones_run() -> None:
    ran: list[int] = []
    faults: list[object] = []

    def fail() -> None:
        raise ValueError("a fault")

    async def post() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        pump = Pump(loop)
        pump.post(fail)
        pump.post(ran.append, 1)
        await until(lambda: bool(ran))

    asyncio.run(post())
    assert str(faults[0]) == "a fault"


def test_a_loop_that_waits_in_its_poll_has_no_lag_and_a_busy_one_has_that_of_its_slice() -> None:
    async def lags() -> tuple[int, int]:
        pump = Pump(asyncio.get_running_loop())
        busy_ns = 3_000_000
        done = asyncio.get_running_loop().create_future()
        pump.post(burn, monotonic_ns() + busy_ns)
        pump.post(done.set_result, None)
        await done
        now_ns = monotonic_ns()
        return pump.unpolled_ns(pump._ended_ns), pump.unpolled_ns(now_ns + 1_000_000_000)

    busy, waiting = asyncio.run(lags())
    assert busy > 0
    assert waiting == 0
