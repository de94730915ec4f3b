"""The worker as the process that it is."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.load_worker import worker
from fakes.scheduled_server import ScheduledServer


def test_ttft_and_gaps_in_the_log_are_those_that_the_server_logged(tmp_path: Path) -> None:
    load = {"concurrency": 8, "requests": 24, "warmup": 2, "max_tokens": 32}
    with ScheduledServer(tmp_path, ttft_ms=40, gap_ms=10) as server:
        with worker(tmp_path, server.url, load=load) as run:
            assert run.wait() == 0
            requests, tokens = run.rows("requests.csv"), run.rows("tokens.csv")
            record = run.record()
            text = (run.folder / "text.jsonl").read_text().splitlines()
        log = {entry["response_id"]: entry for entry in server.send_log()}
    assert len(requests) == 26
    assert len(tokens) == len(text) == 26 * 32
    ttft_errors, gap_errors = [], []
    for row in requests:
        entry = log[row["response_id"]]
        sent = np.array(entry["sent_ns"]) / 1e9
        arrived = np.array(
            [float(t["arrival_s"]) for t in tokens if t["request_id"] == row["request_id"]]
        )
        ttft_errors.append(float(row["ttft_s"]) - (sent[0] - entry["received_ns"] / 1e9))
        gap_errors.extend(np.diff(arrived) - np.diff(sent))
    assert np.median(np.abs(ttft_errors)) < 0.002
    assert np.median(np.abs(gap_errors)) < 0.002
    assert {row["tokens"] for row in tokens} == {"1"}
    assert {row["output_tokens"] for row in requests} == {"32"}
    assert record["state"] == "done"
    assert record["ended_by"] == "count"
    assert record["summary"] is not None
    assert record["clock"] in {"kernel", "user"}


def test_the_slider_and_stop_come_by_stdin(tmp_path: Path) -> None:
    load = {"concurrency": 1, "warmup": 1, "max_tokens": 10_000}
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=10) as server,
        worker(tmp_path, server.url, load={**load, "warmup": 0}) as run,
    ):
        run.until(lambda: len(run.rows("sends.csv")) == 1)
        run.tell("not a command")
        run.tell('{"command": "concurrency", "value": 4}')
        run.until(lambda: len(run.rows("sends.csv")) == 4)
        run.tell('{"command": "stop"}')
        assert run.wait() == 0
        assert run.record()["ended_by"] == "hand"
        assert [row["status"] for row in run.rows("requests.csv")] == ["cancelled"] * 4
        assert "not a command" in (run.folder / "worker.log").read_text()


@pytest.mark.parametrize("goodbye", ["end of stdin", "TERM"])
def test_an_app_that_is_gone_ends_the_run_as_aborted_with_its_files_whole(
    tmp_path: Path, goodbye: str
) -> None:
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=10) as server,
        worker(
            tmp_path, server.url, load={"concurrency": 3, "max_tokens": 9_999, "warmup": 0}
        ) as run,
    ):
        run.until(lambda: len(run.rows("tokens.csv")) > 9)
        run.process.send_signal(signal.SIGINT)  # the app's business, not ours
        if goodbye == "TERM":
            run.process.send_signal(signal.SIGTERM)
        else:
            run.hang_up()
        assert run.wait() == 130
        record = run.record()
        assert (record["state"], record["ended_by"]) == ("aborted", "app gone")
        assert record["ended_utc"]
        assert [row["status"] for row in run.rows("requests.csv")] == ["cancelled"] * 3
        run_files = ["sends.csv", "tokens.csv", "requests.csv", "load.csv"]
        assert all((run.folder / name).read_bytes().endswith(b"\n") for name in run_files)


def test_a_kill_in_mid_run_leaves_whole_rows_up_to_the_last_flush(tmp_path: Path) -> None:
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=2) as server,
        worker(tmp_path, server.url, load={"concurrency": 8, "max_tokens": 50, "warmup": 0}) as run,
    ):
        run.until(lambda: len(run.rows("requests.csv")) > 20)
        seen = len(run.rows("tokens.csv"))
        run.process.kill()
        run.process.wait()
        tokens, sends = run.rows("tokens.csv"), run.rows("sends.csv")
        assert len(tokens) >= seen
        assert all(None not in row.values() for row in tokens)
        known = {row["request_id"] for row in sends}
        assert {row["request_id"] for row in tokens} <= known
        assert run.record()["state"] == "idle"


def test_streams_in_flight_are_on_disk_soon_after_they_are_sent(tmp_path: Path) -> None:
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=1_000) as server,
        worker(tmp_path, server.url, load={"concurrency": 2, "max_tokens": 60, "warmup": 0}) as run,
    ):
        run.until(lambda: len(run.rows("tokens.csv")) == 2)
        assert len(run.rows("sends.csv")) == 2
        assert run.rows("requests.csv") == []


def test_each_second_the_worker_says_how_it_does_and_how_the_server_does(tmp_path: Path) -> None:
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=5) as server,
        worker(
            tmp_path, server.url, load={"concurrency": 4, "max_tokens": 5_000, "warmup": 0}
        ) as run,
    ):
        run.until(
            lambda: len(run.rows("client.csv")) >= 2 and len(run.rows("server_metrics.csv")) >= 2
        )
        row = run.rows("client.csv")[-1]
        assert row["in_flight"] == "4"
        assert float(row["lag_p99_s"]) >= float(row["lag_p50_s"]) > 0
        assert 0 < float(row["cpu_share"]) < 2
        metrics = run.rows("server_metrics.csv")[-1]
        assert (metrics["running"], metrics["kv_usage"]) == ("4", "0.25")
        assert metrics["prompt_tokens_total"] == ""
        assert metrics["ttft_count"] == "4"


def test_the_engines_own_means_stand_beside_the_labs(tmp_path: Path) -> None:
    script = {"ttft_ms": 40, "gap_ms": 5, "queue_ms": 10, "prefill_ms": 20}
    load = {"concurrency": 2, "requests": 6, "max_tokens": 4, "warmup": 0}
    with (
        ScheduledServer(tmp_path, **script) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        sent = [entry["sent_ns"] for entry in server.send_log()]
    first, *_, last = run.rows("server_metrics.csv")
    assert (first["ttft_count"], last["ttft_count"], last["itl_count"]) == ("0", "6", "18")
    summary = run.record()["summary"]
    gaps_ns = [reply[-1] - reply[0] for reply in sent]
    assert summary["engine_itl_mean_s"] == pytest.approx(sum(gaps_ns) / 18e9)
    assert 0 < summary["engine_ttft_mean_s"] == float(last["ttft_sum_s"]) / 6
    assert (summary["ttft_split"]["n"], summary["ttft_split"]["queue_s"]) == (6, 0.01)
    assert summary["ttft_split"]["rest_s"] == pytest.approx(summary["ttft_s"]["mean"] - 0.03)


def test_a_run_below_a_second_has_a_row_about_its_worker(tmp_path: Path) -> None:
    load = {"concurrency": 1, "requests": 1, "max_tokens": 2, "warmup": 0}
    with (
        ScheduledServer(tmp_path, ttft_ms=5, gap_ms=5) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        row = run.rows("client.csv")[-1]
        assert row["in_flight"] == "0"
        assert float(row["lag_p99_s"]) > 0


def test_a_fresh_worker_pays_no_set_up_inside_its_first_ttft(tmp_path: Path) -> None:
    load = {"concurrency": 1, "requests": 3, "max_tokens": 2, "warmup": 0}
    with (
        ScheduledServer(tmp_path, ttft_ms=100, gap_ms=1) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        first, *_ = run.rows("requests.csv")
        assert float(first["connect_s"]) > 0
        assert 0.099 <= float(first["ttft_s"]) < 0.13


def test_the_summary_of_an_open_loop_has_the_time_from_plan_beside_the_service_time(
    tmp_path: Path,
) -> None:
    load = {"concurrency": 1, "rate": 10.0, "requests": 8, "max_tokens": 6, "warmup": 0}
    with (
        ScheduledServer(tmp_path, ttft_ms=250, gap_ms=50) as server,
        worker(tmp_path, server.url, load=load) as run,
    ):
        assert run.wait() == 0
        summary = run.record()["summary"]
    assert summary["rate"] == 10.0
    assert summary["e2e_s"]["mean"] == pytest.approx(0.507, abs=0.04)
    assert summary["from_plan_s"]["mean"] == pytest.approx(1.9, abs=0.2)
    assert summary["output_tokens_per_s"] == pytest.approx(12.0, abs=2.0)


def synthetic_run(tmp_path: Path, api: str, **script: Any) -> tuple[int, dict[str, Any], set[str]]:
    """Return exit code, record and prompt lengths of a run with prompts of 200 tokens."""
    with (
        ScheduledServer(tmp_path, ttft_ms=1, gap_ms=1, **script) as server,
        worker(
            tmp_path,
            server.url,
            target={"base_url": server.url, "served_model": "tiny-lm", "api": api},
            load={"concurrency": 4, "requests": 12, "max_tokens": 2},
            prompts={"tokens": 200},
        ) as run,
    ):
        code = run.wait()
        lengths = {row["prompt_tokens"] for row in run.rows("requests.csv")}
        prompts = [entry["prompt"] for entry in server.send_log()]
        assert len(set(prompts)) == len(prompts)
        return code, run.record(), lengths


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_synthetic_prompts_have_exactly_the_asked_length_by_the_engines_own_count(
    tmp_path: Path, api: str
) -> None:
    code, _, lengths = synthetic_run(tmp_path, api, template_tokens=9)
    assert (code, lengths) == (0, {"200"})


def test_without_tokenize_completions_get_token_ids(tmp_path: Path) -> None:
    code, _, lengths = synthetic_run(tmp_path, "completions")
    assert (code, lengths) == (0, {"200"})


def test_an_engine_that_has_neither_is_said_in_one_sentence(tmp_path: Path) -> None:
    code, record, lengths = synthetic_run(tmp_path, "chat")
    assert (code, record["state"], lengths) == (1, "failed", set())
    assert record["sentence"] == (
        "This engine cannot be asked for prompts of an exact length: it has no /tokenize, and chat "
        "takes no token ids; choose a prompt set instead."
    )


BAD = [
    ({"prompts": {"tokens": 200}}, "/tokenize did not answer: "),
    ({"load": {"rate": -1.0}}, "The rate has to be more than 0"),
    ({"prompts": {"source": "none.txt"}}, "none.txt cannot be read"),
    ({"load": {"concurrency": 0}}, "The concurrency has to be from 1 to 256."),
    ({"load": {"requests": 0, "max_tokens": 0}}, "at least 1. The number of tokens has to be"),
    ({"target": {"base_url": "nonsense", "served_model": "m"}}, "no address of a server"),
]


@pytest.mark.parametrize(("plan", "sentence"), BAD)
def test_a_run_that_cannot_begin_says_why(
    tmp_path: Path, plan: dict[str, Any], sentence: str
) -> None:
    with worker(tmp_path, "http://127.0.0.1:9/v1", **plan) as run:
        assert run.wait() == 1
        record = run.record()
        assert record["state"] == "failed"
        assert sentence in record["sentence"]


def test_a_plan_that_cannot_be_read_is_said_in_the_log(tmp_path: Path) -> None:
    with worker(tmp_path, "http://127.0.0.1:9/v1", load={"concurrency": "many"}) as run:
        assert run.wait() == 1
        log = (run.folder / "worker.log").read_text()
        assert "cannot be read" in log
        assert "Traceback" not in log


def test_a_dead_server_fails_the_run_with_a_sentence(tmp_path: Path) -> None:
    with ScheduledServer(tmp_path) as server:
        url = server.url
    with worker(tmp_path, url) as run:
        assert run.wait() == 1
        assert "requests in a row failed" in run.record()["sentence"]


DISK_OF_20_KB = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.argv = ["measurements", sys.argv[1]]
runpy.run_module("measurements", run_name="__main__")
"""


def test_a_disk_that_takes_no_more_fails_the_run_and_keeps_what_was_written(tmp_path: Path) -> None:
    load = {"concurrency": 8, "max_tokens": 10_000, "warmup": 0}
    with (
        ScheduledServer(tmp_path, ttft_ms=1, gap_ms=1) as server,
        worker(tmp_path, server.url, command=["-c", DISK_OF_20_KB], load=load) as run,
    ):
        assert run.wait() == 1
        record = run.record()
        assert record["state"] == "failed"
        assert record["sentence"].startswith("The run folder cannot be written: File too large")
        assert len(run.rows("tokens.csv")) > 100
