"""The closed loop against a real server: how many streams, when, and what a dead server does."""

import asyncio
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest
from fakes.loads import running, script, states
from fakes.scheduled_server import ScheduledServer
from fakes.waiting import until

from measurements import plan
from measurements.states import RunState


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def test_exactly_the_asked_requests_are_sent_warm_up_first_and_marked(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=3, requests=10, warmup=4, max_tokens=3) as run:
            await run.over()
            assert run.load.state is RunState.DONE
            assert run.load.ended_by == "count"
            assert states(run) == ["warming_up", "measuring", "draining", "done"]
            ends = run.rows("requests.csv")
            assert [row["warmup"] for row in ends].count("1") == 4
            assert {row["status"] for row in ends} == {"ok"}
            sends = run.rows("sends.csv")
            assert len(sends) == len(ends) == 14
            assert [row["request_id"] for row in sends if row["warmup"] == "1"] == list("0123")
            last_warm = max(e2e_at(row) for row in ends if row["warmup"] == "1")
            first = min(float(row["sent_s"]) for row in sends if row["warmup"] == "0")
            assert first >= last_warm

    with ScheduledServer(tmp_path, ttft_ms=10, gap_ms=2) as server:
        asyncio.run(test(server.url))
        assert len(server.send_log()) == 14


def e2e_at(row: dict[str, str]) -> float:
    return float(row["sent_s"]) + float(row["e2e_s"])


def test_the_concurrency_is_held_and_never_passed(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=8, requests=40, warmup=0, max_tokens=5) as run:
            await run.over()
            edges = [(float(row["sent_s"]), 1) for row in run.rows("sends.csv")]
            edges += [(e2e_at(row), -1) for row in run.rows("requests.csv")]
            level, highest = 0, 0
            for _, step in sorted(edges):
                level += step
                highest = max(highest, level)
            assert highest == 8
            held = [row["held"] for row in run.rows("load.csv") if row["state"] == "measuring"]
            assert held == ["0", "1"]

    with ScheduledServer(tmp_path, ttft_ms=20, gap_ms=2) as server:
        asyncio.run(test(server.url))


def test_all_connections_are_open_before_the_first_counted_request_is_sent(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=8, requests=16, warmup=2, max_tokens=2) as run:
            await run.over()
            sends = {row["request_id"]: row["warmup"] for row in run.rows("sends.csv")}
            assert list(sends.values()).count("1") == 2
            connected = [row for row in run.rows("requests.csv") if row["connect_s"]]
            assert len(connected) == 8  # once for each stream, warm-up or first round
            assert {row["held"] for row in run.rows("load.csv") if row["state"] == "measuring"} >= {
                "1"
            }

    with ScheduledServer(tmp_path, ttft_ms=20, gap_ms=1) as server:
        asyncio.run(test(server.url))


def test_a_run_of_as_many_requests_as_streams_holds_them_until_the_first_one_ends(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=4, requests=4, warmup=0, max_tokens=5) as run:
            await run.over()
            rows = [(row["state"], row["held"]) for row in run.rows("load.csv")]
            assert rows == [
                ("measuring", "0"),
                ("measuring", "1"),
                ("draining", "0"),
                ("done", "0"),
            ]

    with ScheduledServer(tmp_path, ttft_ms=20, gap_ms=2) as server:
        asyncio.run(test(server.url))


def test_connections_are_opened_before_the_send_and_then_kept(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=2, requests=8, warmup=0, max_tokens=2) as run:
            await run.over()
            connects = [row["connect_s"] for row in run.rows("requests.csv")]
            assert len([value for value in connects if value]) == 2
            assert all(float(value) > 0 for value in connects if value)

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=1) as server:
        asyncio.run(test(server.url))


def test_a_server_that_closes_after_each_reply_gets_a_new_connection_for_each(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=2, requests=6, warmup=0, max_tokens=2) as run:
            await run.over()
            ends = run.rows("requests.csv")
            assert {row["status"] for row in ends} == {"ok"}
            assert all(row["connect_s"] for row in ends)

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=1, close=True) as server:
        asyncio.run(test(server.url))


def test_moving_the_slider_up_starts_streams_at_once_and_down_lets_the_surplus_end(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=1, warmup=0, max_tokens=20) as run:
            await until(lambda: run.load.in_flight == 1)
            run.load.set_concurrency(8)
            await until(lambda: run.load.in_flight == 8)
            assert {row["status"] for row in run.rows("requests.csv")} <= {"ok"}
            run.load.set_concurrency(2)
            assert run.load.in_flight == 8
            await until(lambda: run.load.in_flight == 2)
            run.load.stop()
            statuses = [row["status"] for row in run.rows("requests.csv")]
            assert statuses.count("cancelled") == 2
            targets = [row["concurrency"] for row in run.rows("load.csv")]
            assert sorted(set(targets), key=targets.index) == ["1", "8", "2"]

    with ScheduledServer(tmp_path, ttft_ms=20, gap_ms=10) as server:
        asyncio.run(test(server.url))


@pytest.mark.parametrize(("asked", "got"), [(0, 1), (-5, 1), (100_000, plan.MAX_CONCURRENCY)])
def test_an_absurd_target_is_brought_into_its_limits(
    folder: Path, tmp_path: Path, asked: int, got: int
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=1, warmup=0) as run:
            run.load.set_concurrency(asked)
            assert run.load.target == got

    with ScheduledServer(tmp_path) as server:
        asyncio.run(test(server.url))


def test_more_than_a_hundred_streams_run_at_once(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=128, requests=128, warmup=0) as run:
            await until(lambda: run.load.in_flight == 128)
            await run.over()
            assert {row["status"] for row in run.rows("requests.csv")} == {"ok"}

    with ScheduledServer(tmp_path, ttft_ms=500, gap_ms=20, chunks=2) as server:
        asyncio.run(test(server.url))


def test_stop_cancels_what_is_in_flight_and_the_server_sees_it(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=3, warmup=0, max_tokens=10_000) as run:
            await until(lambda: len(run.rows("tokens.csv")) >= 9)
            stopped_ns = monotonic_ns()
            run.load.stop()
            await run.over()
            assert (run.load.state, run.load.ended_by) == (RunState.DONE, "hand")
            ends = run.rows("requests.csv")
            assert [row["status"] for row in ends] == ["cancelled"] * 3
            assert {row["ttft_s"] + row["e2e_s"] for row in ends} == {""}
            assert states(run)[-2:] == ["draining", "done"]
            await until(lambda: len(server.send_log()) == 3)
            for entry in server.send_log():
                assert entry["ended"] == "client closed"
                assert entry["ended_ns"] - stopped_ns < 1_000_000_000

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=10) as server:
        asyncio.run(test(server.url))


def test_the_app_that_goes_away_ends_the_run_as_aborted(folder: Path, tmp_path: Path) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=2, warmup=0, max_tokens=10_000) as run:
            await until(lambda: run.load.in_flight == 2)
            run.load.abort("app gone", "the app went away")
            await run.over()
            assert (run.load.state, run.load.ended_by) == (RunState.ABORTED, "app gone")
            ends = run.rows("requests.csv")
            assert [(row["status"], row["reason"]) for row in ends] == [
                ("cancelled", "the app went away")
            ] * 2

    with ScheduledServer(tmp_path) as server:
        asyncio.run(test(server.url))


def test_a_dead_server_gets_a_few_attempts_a_second_and_then_the_run_fails(
    folder: Path, tmp_path: Path
) -> None:
    with ScheduledServer(tmp_path) as server:
        url = server.url

    async def test() -> None:
        async with running(folder, url, concurrency=4, warmup=0) as run:
            await run.over()
            assert run.load.state is RunState.FAILED
            assert "requests in a row failed, the last: no connection to 127.0.0.1" in (
                run.load.sentence
            )
            ends = run.rows("requests.csv")
            assert {row["status"] for row in ends} == {"refused"}
            assert {row["sent_s"] for row in ends} == {""}
            assert 10 <= len(ends) <= 20
            assert run.rows("sends.csv") == []

    asyncio.run(test())


def test_a_request_that_the_server_does_not_accept_is_said_after_the_first_reply(
    folder: Path, tmp_path: Path
) -> None:
    async def test(url: str) -> None:
        async with running(folder, url, concurrency=1, warmup=0) as run:
            await run.over()
            assert run.load.sentence == (
                "The server does not accept the request: HTTP 400: 8 + 2045 > 2048."
            )
            assert len(run.rows("requests.csv")) == 1

    with ScheduledServer(tmp_path, status=400, message="8 + 2045 > 2048", ttft_ms=1) as server:
        asyncio.run(test(server.url))


FAILURES = [
    ({"status": 503, "message": "busy", "ttft_ms": 1}, "http_error", "HTTP 503: busy"),
    ({"end": "cut", "chunks": 2}, "truncated", "finish_reason"),
    ({"end": "reset", "chunks": 2}, "reset", "connection was lost"),
    ({"end": "stall", "chunks": 2}, "stalled", "nothing came for 0.2 s"),
    ({"end": "error", "chunks": 2, "message": "engine failed"}, "stream_error", "engine failed"),
    ({"end": "drop"}, "reset", "without an answer"),
    ({"page": "<html>", "ttft_ms": 1}, "not_event_stream", "text/html"),
    ({"ttft_ms": 60_000, "role_ms": None}, "timeout", "not complete within 0.5 s"),
]


@pytest.mark.parametrize(("fields", "status", "reason"), FAILURES, ids=lambda v: str(v)[:24])
def test_each_kind_of_failure_has_its_status_one_request_and_no_latency(
    folder: Path, tmp_path: Path, fields: dict[str, Any], status: str, reason: str
) -> None:
    async def test(url: str) -> None:
        async with running(
            folder,
            url,
            prompt=script(**fields),
            requests=1,
            warmup=0,
            timeout_s=0.5,
            idle_timeout_s=0.2,
        ) as run:
            await run.over()
            assert run.load.state is RunState.DONE
            (row,) = run.rows("requests.csv")
            assert row["status"] == status
            assert reason in row["reason"]
            assert row["ttft_s"] + row["tpot_s"] + row["e2e_s"] == ""
            if "chunks" in fields:
                assert len(run.rows("tokens.csv")) == 2
            await until(lambda: len(server.send_log()) == 1)

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=5) as server:
        asyncio.run(test(server.url))


def test_a_proxy_in_the_environment_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(
            name, "socks5://127.0.0.1:9" if name == "ALL_PROXY" else "http://127.0.0.1:9"
        )

    async def test(url: str) -> None:
        async with running(folder, url, requests=2, warmup=1, max_tokens=2) as run:
            await run.over()
            assert {row["status"] for row in run.rows("requests.csv")} == {"ok"}

    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=1) as server:
        asyncio.run(test(server.url))
