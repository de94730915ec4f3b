"""What servers and surroundings do to a run (cases S17 to S23 and S27), with the real worker."""

import time
import urllib.request
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np
import pytest
from fakes.load_worker import DEADLINE_S, Worker, worker
from fakes.scheduled_server import ScheduledServer


def running(server: ScheduledServer) -> int:
    """Return how many requests the server says are running."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{server.port}/metrics") as page:
        line = next(x for x in page.read().splitlines() if x.startswith(b"vllm:num_requests_run"))
    return int(float(line.split()[-1]))


def logged(server: ScheduledServer, number: int) -> list[dict[str, Any]]:
    """Return the server's log as soon as it has so many replies; a reply is logged after it."""
    deadline = time.monotonic() + DEADLINE_S
    while len(found := server.send_log()) < number:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_s17_a_refused_request_is_sent_once_and_no_other_in_its_place(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text('{"script": {"status": 503, "ttft_ms": 1}}\nhello\nhello\n')
    load = {"concurrency": 1, "requests": 3, "warmup": 0, "max_tokens": 2}
    with (
        ScheduledServer(tmp_path, ttft_ms=1, gap_ms=1) as server,
        worker(tmp_path, server.url, load=load, prompts={"source": str(prompts)}) as run,
    ):
        assert run.wait() == 0
        rows = run.rows("requests.csv")
        assert sorted(row["status"] for row in rows) == ["http_error", "ok", "ok"]
        assert [row["reason"] for row in rows if row["http_status"] == "503"] == [
            "HTTP 503: scripted failure"
        ]
        assert len(logged(server, 3)) == 3


CLOCK_SET_BACK_AFTER_20_READS = """
import runpy, sys
from measurements import connection

HOUR_NS = 3_600_000_000_000
now_ns, kernel_ns = connection.time_ns, connection.kernel_time_ns
reads = 0

def back():
    return HOUR_NS if reads > 20 else 0

def jumping_kernel(ancillary):
    global reads
    reads += 1
    at_ns = kernel_ns(ancillary)
    return None if at_ns is None else at_ns - back()

connection.kernel_time_ns = jumping_kernel
connection.time_ns = lambda: now_ns() - back()
runpy.run_module("measurements", run_name="__main__")
"""


def test_s18_a_wall_clock_set_back_in_mid_stream_changes_no_duration(tmp_path: Path) -> None:
    load = {"concurrency": 1, "requests": 1, "warmup": 0, "max_tokens": 60}
    command = ["-c", CLOCK_SET_BACK_AFTER_20_READS]
    with (
        ScheduledServer(tmp_path, ttft_ms=10, gap_ms=5) as server,
        worker(tmp_path, server.url, command=command, load=load) as run,
    ):
        assert run.wait() == 0
        (row,) = run.rows("requests.csv")
        tokens = run.rows("tokens.csv")
        sent_ns = logged(server, 1)[0]["sent_ns"]
    assert row["status"] == "ok"
    assert len(tokens) == 60
    arrived = np.array([float(token["arrival_s"]) for token in tokens])
    errors = np.diff(arrived) - np.diff(np.array(sent_ns)) / 1e9
    assert np.abs(errors).max() < 5  # and not an hour
    assert "user" in {token["clock"] for token in tokens}  # the read at which it moved


@pytest.mark.parametrize("streams", [90, 100, 101, 128, 256])
def test_s19_so_many_streams_run_at_once_as_are_asked_for(tmp_path: Path, streams: int) -> None:
    load = {"concurrency": streams, "warmup": 0}
    with (
        ScheduledServer(tmp_path, ttft_ms=1, chunks=1, end="stall") as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        run.until(lambda: running(server) == streams)
        run.until(lambda: len(run.rows("tokens.csv")) == streams)
        held = run.rows("load.csv")[-1]
        assert (held["concurrency"], held["held"]) == (str(streams), "1")
        run.tell('{"command": "stop"}')
        assert run.wait() == 0
        assert len(logged(server, streams)) == streams


PROXY = "http://127.0.0.1:9"
PROXIES = [
    {"HTTP_PROXY": PROXY, "http_proxy": PROXY},
    {"HTTP_PROXY": PROXY, "http_proxy": PROXY, "NO_PROXY": "localhost", "no_proxy": "localhost"},
    {"ALL_PROXY": "socks5://127.0.0.1:9", "all_proxy": "socks5://127.0.0.1:9"},
]


@pytest.mark.parametrize("proxies", PROXIES)
def test_s20_a_server_on_this_machine_is_asked_directly(
    tmp_path: Path, proxies: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)
    load = {"concurrency": 2, "requests": 4, "warmup": 1, "max_tokens": 2}
    with (
        ScheduledServer(tmp_path, ttft_ms=1, gap_ms=1) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        assert [row["status"] for row in run.rows("requests.csv")] == ["ok"] * 5
        assert len(logged(server, 5)) == 5


def own_ttfts(run: Worker, server: ScheduledServer) -> list[tuple[float, float]]:
    """Return each request's TTFT by the lab and by the server, in s, in order of sending."""
    rows = sorted(run.rows("requests.csv"), key=lambda row: float(row["sent_s"]))
    entries = {entry["response_id"]: entry for entry in logged(server, len(rows))}
    pairs = []
    for row in rows:
        entry = entries[row["response_id"]]
        pairs.append((float(row["ttft_s"]), (entry["sent_ns"][0] - entry["received_ns"]) / 1e9))
    return pairs


def test_s22_localhost_costs_nothing_inside_a_ttft(tmp_path: Path) -> None:
    load = {"concurrency": 1, "requests": 3, "warmup": 0, "max_tokens": 2}
    with ScheduledServer(tmp_path, ttft_ms=20, gap_ms=1) as server:
        url = f"http://localhost:{server.port}/v1"
        with worker(tmp_path, url, load=load) as run:
            assert run.wait() == 0
            assert all(ours - theirs < 0.030 for ours, theirs in own_ttfts(run, server))


def test_s23_a_stop_closes_the_connection_and_leaves_the_reply_out_of_every_figure(
    tmp_path: Path,
) -> None:
    load = {"concurrency": 1, "warmup": 0, "max_tokens": 10_000}
    with (
        ScheduledServer(tmp_path, ttft_ms=20, gap_ms=20) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        run.until(lambda: len(run.rows("tokens.csv")) >= 3)
        assert running(server) == 1
        told_ns = monotonic_ns()
        run.tell('{"command": "stop"}')
        assert run.wait() == 0
        (entry,) = logged(server, 1)
        assert running(server) == 0
        assert entry["ended"] == "client closed"
        assert entry["ended_ns"] - told_ns < 1_000_000_000
        (row,) = run.rows("requests.csv")
        assert (row["status"], row["ttft_s"], row["tpot_s"]) == ("cancelled", "", "")
        summary = run.record()["summary"]
    assert (summary["cancelled"], summary["completed"], summary["failed"]) == (1, 0, 0)
    assert [summary[name]["n"] for name in ("ttft_s", "itl_s", "tpot_s", "e2e_s")] == [0] * 4


def test_s27_the_first_request_pays_for_no_set_up(tmp_path: Path) -> None:
    load = {"concurrency": 1, "requests": 3, "warmup": 0, "max_tokens": 2}
    with (
        ScheduledServer(tmp_path, ttft_ms=100, gap_ms=1) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        assert all(ours - theirs < 0.030 for ours, theirs in own_ttfts(run, server))
        connected = [row["connect_s"] != "" for row in run.rows("requests.csv")]
        assert connected == [True, False, False]


def test_a_key_that_would_break_every_request_fails_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATENCY_LAB_API_KEY", "key\n")
    with worker(tmp_path, "http://127.0.0.1:9/v1") as run:
        assert run.wait() == 1
        assert "no line end" in run.record()["sentence"]
