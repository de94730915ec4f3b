"""The engine's own figures from its /metrics page."""

import asyncio
from pathlib import Path

import pytest
from fakes.raw_server import OK, always, serving
from fakes.scheduled_server import ScheduledServer

from measurements import server_metrics
from measurements.pool import Pool, resolve
from measurements.pump import Pump
from measurements.server_metrics import Row, Scraper, parse

PAGE = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny-lm"} 3.0
vllm:num_requests_waiting{engine="0",model_name="tiny-lm"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="a } b"} 0.125
vllm:prompt_tokens_total{engine="0",model_name="tiny-lm"} 1.2e+06
vllm:prompt_tokens_created{engine="0",model_name="tiny-lm"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="tiny-lm"} 640.0
vllm:prefix_cache_queries_total{engine="0",model_name="tiny-lm"} 100.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny-lm"} 16.0
vllm:time_to_first_token_seconds_bucket{le="0.001",model_name="tiny-lm"} 0.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny-lm"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny-lm"} 2.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="tiny-lm"} 630.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="tiny-lm"} 8.440231337001933
"""


def test_the_wanted_figures_are_read_and_nothing_else() -> None:
    engine = (3.0, 1.0, 0.125, 1.2e6, 640.0, 100.0, 16.0)
    assert parse(PAGE) == (*engine, 2.5, 10.0, 8.440231337001933, 630.0)


def test_what_the_page_lacks_is_empty() -> None:
    assert parse(b"vllm:num_requests_running 2\n") == (2.0, *(None,) * 10)
    assert parse(b"<html>") == (None,) * 11


def test_several_engines_are_joined_and_older_names_are_known() -> None:
    page = b"""vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:gpu_cache_usage_perc{engine="0"} 0.5
vllm:gpu_cache_usage_perc{engine="1"} 0.25
vllm:gpu_prefix_cache_hits_total 7
"""
    assert parse(page) == (7.0, None, 0.375, None, None, None, 7.0, *(None,) * 4)


def test_a_figure_that_is_no_number_is_empty() -> None:
    assert (
        parse(b"vllm:num_requests_running NaN\nvllm:num_requests_waiting 1.2.3\n") == (None,) * 11
    )


async def asked(url: str, times: int) -> tuple[list[Row], bool]:
    found: list[Row] = []
    pump = Pump(asyncio.get_running_loop())
    pool = Pool(await resolve(url), pump)
    scraper = Scraper(pool, pump, lambda _, row: found.append(row))
    async with asyncio.timeout(10):
        while len(found) < times and not scraper.useless:
            scraper.ask()
            await asyncio.sleep(0.005)
    useless = scraper.useless
    scraper.close()
    pool.close()
    return found, useless


def test_a_real_server_is_asked_again_and_again(tmp_path: Path) -> None:
    with ScheduledServer(tmp_path) as server:
        rows, useless = asyncio.run(asked(server.url, 3))
    assert rows[:3] == [(0.0, 0.0, 0.25, *(None,) * 4, *(0.0,) * 4)] * 3
    assert not useless


def test_an_answer_that_is_awaited_has_become_a_row(tmp_path: Path) -> None:
    async def test(url: str) -> list[Row]:
        found: list[Row] = []
        pump = Pump(asyncio.get_running_loop())
        pool = Pool(await resolve(url), pump)
        scraper = Scraper(pool, pump, lambda _, row: found.append(row))
        scraper.ask()  # its answer is not waited for
        await scraper.answer(10.0)
        scraper.close()
        pool.close()
        return found

    with ScheduledServer(tmp_path) as server:
        assert len(asyncio.run(test(server.url))) == 1


def test_nobody_waits_for_a_server_that_is_away(tmp_path: Path) -> None:
    async def test(url: str) -> None:
        pump = Pump(asyncio.get_running_loop())
        pool = Pool(await resolve(url), pump)
        async with asyncio.timeout(10):
            await Scraper(pool, pump, lambda *_: None).answer(1e6)
        pool.close()

    with ScheduledServer(tmp_path) as server:
        url = server.url
    asyncio.run(test(url))


@pytest.mark.parametrize("page", ["404", "html", "not http"])
def test_a_server_without_such_a_page_is_asked_no_more(page: str) -> None:
    answers = {
        "404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "html": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        "not http": b"hello\r\n",
    }

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answers[page])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def test() -> tuple[list[Row], bool]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await asked(f"http://127.0.0.1:{port}/v1", 1)

    rows, useless = asyncio.run(test())
    assert rows == []
    assert useless


def test_a_page_that_never_ends_is_asked_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_metrics, "PAGE_LIMIT", 1_000)
    page = OK + b"\r\n" + b"vllm:num_requests_running 1\n" * 100

    async def test() -> tuple[list[Row], bool]:
        async with serving(always(page)) as server:
            return await asked(server.url, 1)

    assert asyncio.run(test()) == ([], True)
