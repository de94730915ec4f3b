"""The open loop against a real server: sent by the schedule, whatever the server does."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.loads import Run, running, script, states
from fakes.scheduled_server import ScheduledServer
from fakes.waiting import until

from measurements.load import problem
from measurements.plan import Load
from measurements.states import RunState


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def column(run: Run, file: str, name: str, **where: str) -> np.ndarray:
    rows = [row for row in run.rows(file) if all(row[k] == v for k, v in where.items())]
    return np.array([float(row[name] or "nan") for row in rows])


@pytest.mark.parametrize("arrival", ["constant", "poisson"])
def test_requests_are_planned_by_the_schedule_and_sent_when_they_are_due(
    folder: Path, tmp_path: Path, arrival: str
) -> None:
    settings: dict[str, Any] = {"rate": 50.0, "arrival": arrival, "seed": 3, "requests": 25}

    async def test(url: str) -> None:
        async with running(folder, url, concurrency=64, warmup=0, max_tokens=4, **settings) as run:
            await run.over()
            assert (run.load.state, run.load.ended_by) == (RunState.DONE, "count")
            planned, sent = (column(run, "sends.csv", n) for n in ("planned_s", "sent_s"))
            assert len(planned) == 25
            assert np.all(sent >= planned)
            assert np.median(sent - planned) < 0.02
            gaps = np.diff(planned)
            assert (np.ptp(gaps) < 1e-6) == (arrival == "constant")
            assert np.all(np.diff(planned) > 0)

    with ScheduledServer(tmp_path, ttft_ms=100, gap_ms=20) as server:
        asyncio.run(test(server.url))


def test_the_schedule_begins_when_the_warm_up_is_over(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=8, rate=100.0, requests=5, warmup=3, max_tokens=2
        ) as run:
            await run.over()
            assert states(run) == ["warming_up", "measuring", "draining", "done"]
            (began,) = {r["at_s"] for r in run.rows("load.csv") if r["state"] == "measuring"}
            planned = column(run, "sends.csv", "planned_s", warmup="0")
            assert planned - planned[0] == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
            assert planned[0] == pytest.approx(float(began), abs=0.001)
            assert len(column(run, "sends.csv", "planned_s", warmup="1")) == 3

    with ScheduledServer(tmp_path, ttft_ms=50, gap_ms=5) as server:
        asyncio.run(test(server.url))


def test_what_cannot_be_sent_when_it_is_due_waits_and_the_log_has_both_times(
    folder: Path, tmp_path: Path
) -> None:
    """Eight requests planned at 10 per second, one at a time, 500 ms each."""

    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=1, rate=10.0, requests=8, warmup=0, max_tokens=6
        ) as run:
            await run.over()
            planned, sent, e2e = (
                column(run, "requests.csv", name) for name in ("planned_s", "sent_s", "e2e_s")
            )
            assert planned - planned[0] == pytest.approx(np.arange(8) / 10)
            assert e2e.mean() == pytest.approx(0.507, abs=0.04)
            assert (sent + e2e - planned).mean() == pytest.approx(1.9, abs=0.2)
            assert run.rows("load.csv")[0]["held"] == "1"

    with ScheduledServer(tmp_path, ttft_ms=250, gap_ms=50) as server:
        asyncio.run(test(server.url))


@pytest.mark.parametrize("rate", [None, 40.0])
def test_a_run_by_time_sends_no_more_at_its_end_and_lets_replies_finish(
    folder: Path, tmp_path: Path, rate: float | None
) -> None:
    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=20, rate=rate, duration_s=0.4, warmup=0, max_tokens=5
        ) as run:
            await run.over()
            assert (run.load.state, run.load.ended_by) == (RunState.DONE, "time")
            assert states(run) == ["measuring", "draining", "done"]
            sent = column(run, "sends.csv", "sent_s")
            assert sent.max() - sent.min() < 0.41
            assert {row["status"] for row in run.rows("requests.csv")} == {"ok"}
            if rate is not None:
                assert len(sent) == 16

    with ScheduledServer(tmp_path, ttft_ms=60, gap_ms=10) as server:
        asyncio.run(test(server.url))


def test_the_time_ends_a_run_in_which_nothing_is_in_flight(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=2, rate=1.0, duration_s=0.3, warmup=0, max_tokens=1
        ) as run:
            await run.over()
            assert run.load.ended_by == "time"
            assert len(run.rows("sends.csv")) == 1

    with ScheduledServer(tmp_path, ttft_ms=1) as server:
        asyncio.run(test(server.url))


def ending_by_time(run: Run) -> str:
    assert run.load.ended_by == "time"
    return "not sent when it was due; then the time was over"


def ending_by_hand(run: Run) -> str:
    assert run.load.ended_by == "hand"
    return "not sent when it was due; then stopped by hand"


@pytest.mark.parametrize("end", [ending_by_time, ending_by_hand])
def test_requests_that_were_due_and_never_sent_are_logged_as_cancelled(
    folder: Path, tmp_path: Path, end: Any
) -> None:
    duration_s = 0.3 if end is ending_by_time else None

    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=1, rate=50.0, duration_s=duration_s, warmup=0, max_tokens=2
        ) as run:
            if duration_s is None:
                await until(lambda: len(run.rows("requests.csv")) >= 2)
                run.load.stop()
            await run.over()
            reason = end(run)
            ends = run.rows("requests.csv")
            unsent = [row for row in ends if not row["sent_s"]]
            assert unsent
            assert {row["prompt_id"] for row in unsent} == {""}
            assert {(row["status"], row["reason"]) for row in unsent} == {("cancelled", reason)}
            planned = np.sort([float(row["planned_s"]) for row in ends])
            assert np.diff(planned) == pytest.approx(0.02)
            if duration_s is not None:
                assert len(ends) == 15

    with ScheduledServer(tmp_path, ttft_ms=90, gap_ms=10) as server:
        asyncio.run(test(server.url))


def test_moving_the_cap_up_sends_what_waited(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(
            folder, url, concurrency=1, rate=1000.0, requests=6, warmup=0, max_tokens=1_000
        ) as run:
            await until(lambda: run.load.in_flight == 1)
            run.load.set_concurrency(6)
            await until(lambda: run.load.in_flight == 6)
            run.load.stop()
            assert len(run.rows("requests.csv")) == 6

    with ScheduledServer(tmp_path, ttft_ms=10, gap_ms=10) as server:
        asyncio.run(test(server.url))


VLLM_032 = (
    "This model's maximum context length is 2048 tokens. However, your prompt contains at least 4 "
    "input tokens, which exceeds this limit even without any output tokens."
)


def test_a_reply_that_does_not_fit_is_one_sentence_with_its_numbers_and_one_failure(
    folder: Path, tmp_path: Path
) -> None:
    refusal = script(status=400, message=VLLM_032, ttft_ms=50)

    async def test(url: str) -> None:
        async with running(
            folder, url, prompt=refusal, concurrency=64, warmup=0, max_tokens=2045
        ) as run:
            await run.over()
            assert run.load.sentence == (
                "The model has room for 2,048 tokens, which a prompt of at least 4 tokens and a "
                "reply of 2,045 exceed: ask for a shorter reply or prompt, or start the engine "
                "with a greater length."
            )
            statuses = [row["status"] for row in run.rows("requests.csv")]
            assert statuses.count("http_error") == 1
            assert set(statuses) == {"http_error", "cancelled"}

    with ScheduledServer(tmp_path) as server:
        asyncio.run(test(server.url))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": 0.0}, "The rate has to be more than 0 and at most 10,000 requests/s."),
        ({"rate": float("nan")}, "The rate has to be"),
        ({"duration_s": 0.0}, "The duration has to be more than 0 s."),
        ({"rate": 0.5, "duration_s": 1.0}, ""),
    ],
)
def test_an_absurd_schedule_is_refused(settings: dict[str, Any], sentence: str) -> None:
    assert problem(Load(**settings)).startswith(sentence)
    assert bool(problem(Load(**settings))) == bool(sentence)
