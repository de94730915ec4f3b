"""The benchmark's arithmetic, on replies whose figures can be computed in one's head."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.arrivals import lab, report, truth, vllm_bench
from benchmarks.arrivals.cases import FAST_GAP_NS, Case, Result
from benchmarks.arrivals.rounds import Tally
from benchmarks.arrivals.server import Server, build, read_log
from benchmarks.arrivals.truth import Errors, Offered, Reported, Schedule, Served
from measurements.run_folder.writer import write_json

MS = 1_000_000
SCHEDULE = Schedule(ttft_ns=50 * MS, gap_ns=10 * MS)


def served(number: int, received_ms: float, sent_ms: list[float]) -> Served:
    sent = np.array([round(ms * MS) for ms in sent_ms], dtype=np.int64)
    return Served(f"{number:08}", f"bench-{number}", round(received_ms * MS), sent)


def said(key: str, ttft_ms: float, *gaps_ms: float) -> Reported:
    return Reported(key, ttft_ms / 1e3, np.array(gaps_ms) / 1e3)


def test_an_error_is_reported_minus_true_whatever_order_the_replies_come_in() -> None:
    truths = [served(0, 0, [50, 60, 70]), served(1, 5, [55, 66])]
    found = truth.errors(truths, [said("00000001", 51, 10), said("00000000", 49, 10, 10.5)])
    assert (found.replies, found.gaps) == (2, 3)
    assert found.ttft_mean == pytest.approx(0.0)
    assert found.ttft_p99 == pytest.approx(0.001)
    assert found.gap_p99 == pytest.approx(np.quantile([0, 0.0005, 0.001], 0.99))


def test_a_reply_is_found_by_the_tag_of_its_request_too() -> None:
    found = truth.errors([served(7, 0, [50, 60])], [said("bench-7", 50.25, 10)])
    assert found.ttft_mean == pytest.approx(0.00025)


def test_another_number_of_gaps_than_was_sent_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="2 gaps were reported where 1 were sent"):
        truth.errors([served(0, 0, [50, 60])], [said("00000000", 50, 5, 5)])
    with pytest.raises(ValueError, match="No reported reply"):
        truth.errors([served(0, 0, [50])], [said("00000009", 50)])


def test_lateness_is_against_the_schedule_from_the_requests_receipt() -> None:
    found = truth.offered([served(0, 100, [150.0, 160.5])], SCHEDULE)
    assert found.lateness_p99_s == pytest.approx(np.quantile([0, 0.0005], 0.99))


def test_in_flight_is_the_mean_over_the_middle_of_the_run() -> None:
    full = [served(0, 0, [50, 1000]), served(1, 0, [50, 500])]
    assert truth.middle(full) == (100 * MS, 900 * MS)
    found = truth.offered(full, SCHEDULE)
    assert found.in_flight == pytest.approx((800 + 400) / 800)
    assert found.tokens_per_s == pytest.approx(1 / 0.8)


def test_the_rate_leaves_out_both_ends() -> None:
    arrivals = np.array([0.0, 0.5, 0.6, 0.7, 0.95, 1.0])
    assert truth.rate_in_middle(arrivals) == pytest.approx(3 / 0.8)


def test_cpu_is_that_between_the_workers_own_rows() -> None:
    client = {"at_s": np.array([1.0, 2.0, 4.0]), "cpu_share": np.array([9.0, 0.5, 0.25])}
    arrivals = np.concatenate([np.linspace(1.1, 3.9, 500), [0.5, 4.5]])
    assert truth.cpu_per_1000_tokens(client, arrivals) == pytest.approx(2.0)
    alone = {name: values[:1] for name, values in client.items()}
    assert np.isnan(truth.cpu_per_1000_tokens(alone, arrivals))


def test_a_median_leaves_out_what_was_not_measured() -> None:
    assert truth.median([3.0, float("nan"), 1.0]) == 2.0
    assert np.isnan(truth.median([]))


def test_the_results_of_vllm_are_read_in_the_order_of_its_requests() -> None:
    document = {"ttfts": [0.05, 0.06], "itls": [[0.01, 0.02], []], "start_times": [1.0, 2.0]}
    first, second = vllm_bench.reported(document)
    assert (first.key, second.key) == ("bench-0", "bench-1")
    assert list(first.gaps_s) == [0.01, 0.02]
    assert second.gaps_s.size == 0


def test_a_tool_that_brought_nothing_is_quoted(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", tmp_path / "sends-0.jsonl", SCHEDULE)
    (tmp_path / "vllm.log").write_text("Traceback …\nValueError: no such flag\n\n")
    found = vllm_bench._result(VLLM, server)
    assert found == "vllm bench serve brought no result: ValueError: no such flag"


def result(ttft_error_s: float, *, late_s: float = 0.0001, per_s: float = 6000.0) -> Result:
    return Result(
        errors=Errors(replies=1, ttft_mean=ttft_error_s, ttft_p99=0.0009, gap_p99=0.0, gaps=1),
        offered=Offered(lateness_p99_s=late_s, in_flight=63.5, tokens_per_s=6100.0),
        received_per_s=per_s,
        cpu_per_1000_tokens_s=0.05,
    )


def test_a_run_whose_server_was_late_is_thrown_away_and_counted() -> None:
    tally = Tally()
    for found in (result(1e-5), result(1e-5, late_s=0.00021), "It did not start."):
        tally.add(found)
    assert (len(tally.good), tally.thrown_away, tally.failed) == (1, 1, ["It did not start."])


LAB = Case(client="lab", concurrency=64, window=True)
FAST = replace(LAB, window=False, gap_ns=FAST_GAP_NS)
VLLM = Case(client="vllm", concurrency=64)


def test_goals_are_judged_by_the_medians() -> None:
    tallies = {
        LAB: Tally([result(0.00003), result(-0.0001), result(0.9)]),
        FAST: Tally([result(0.0, per_s=31_999.0)]),
        VLLM: Tally([result(0.002)]),
    }
    met = {goal.what: goal.met for goal in report.goals(tallies)}
    assert met == {
        "64 streams, window open: TTFT error mean, ms": True,
        "64 streams, window open: TTFT error p99, ms": True,
        "64 streams, window open: gap error p99, ms": True,
        "64 streams, window open: concurrency held": True,
        "64 streams, window open: CPU s per 1,000 tokens": False,
        "64 streams, one token each millisecond: tokens/s received": False,
        "64 streams, window open: nearer than vllm bench serve, times": True,
    }


def test_tables_and_document_say_what_was_thrown_away_and_why_a_case_is_empty(
    tmp_path: Path,
) -> None:
    tallies = {LAB: Tally([result(0.00003)], 2), VLLM: Tally(failed=["It is not installed."])}
    machine = {"cpu": "a CPU", "cores": 2, "system": "Linux", "python": "3.11"}
    machine |= {"load_before": 0.0, "load_after": 1.0}
    text = report.as_markdown(tallies, machine)
    assert "| Latency Lab, window open | 64 | 10 | 0.030 | 0.900 | 0.000 | 99.2% |" in text
    assert "| 1 (2) |" in text
    assert "vllm bench serve at 64: It is not installed." in text
    write_json(tmp_path / "all.json", report.as_json(tallies, machine, 5))
    document = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert document["cases"][0]["medians"]["ttft_error_mean_s"] == 0.00003
    assert document["cases"][0]["thrown_away"] == 2
    assert document["cases"][1]["medians"]["ttft_error_mean_s"] is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="the server is a C program")
def test_the_lab_is_compared_with_the_log_of_the_real_server(tmp_path: Path) -> None:
    case = Case(client="lab", concurrency=2, rounds=1, gap_ns=FAST_GAP_NS)
    found = lab.measure(case, build(tmp_path), tmp_path)
    assert (found.errors.replies, found.errors.gaps) == (2, 2 * 127)
    assert found.errors.ttft_mean > -0.001
    log = read_log(tmp_path / "sends.jsonl")
    assert [reply.sent_ns.size for reply in log] == [128] * 4  # two of them are warm-up
    assert all((np.diff(reply.sent_ns) > 0).all() for reply in log)
