import json
from pathlib import Path
from typing import Any

import pytest
from hand_written_runs import ended, load_rows, stream, together, write_run

from measurements.run_folder.reader import read
from measurements.summary import Summary, as_json, summarize


def summary_of(folder: Path, **tables: list[dict[str, Any]]) -> Summary:
    return summarize(read(write_run(folder, **tables)))


def test_s05_tokens_that_share_a_chunk_share_its_gap(tmp_path: Path) -> None:
    rows = together(stream(1, 1.0, [(0.100, 1), (0.150, 4), (0.200, 4)]))
    summary = summary_of(tmp_path, **rows)
    assert summary.itl.n == 8
    assert summary.itl.requests == 1
    assert summary.itl.mean == pytest.approx(0.0125)
    assert summary.itl.p50.value == pytest.approx(0.0125)
    assert summary.tpot.mean == pytest.approx(0.0125)
    assert not summary.itl_is_chunk_gap


def test_s05_without_usage_only_chunk_gaps_are_claimed(tmp_path: Path) -> None:
    rows = together(stream(1, 1.0, [(0.100, None), (0.150, None), (0.200, None)]))
    summary = summary_of(tmp_path, **rows)
    assert summary.itl_is_chunk_gap
    assert (summary.itl.n, summary.itl.mean) == (2, pytest.approx(0.050))
    assert (summary.tpot.n, summary.tpot.mean) == (0, None)


def test_a_usage_that_equals_the_chunks_makes_each_chunk_one_token(tmp_path: Path) -> None:
    arrivals = [(0.1, None), (0.2, None), (0.4, None)]
    summary = summary_of(tmp_path, **together(stream(1, 0.0, arrivals, output_tokens=3)))
    assert not summary.itl_is_chunk_gap
    assert summary.itl.mean == pytest.approx(0.15)


def test_a_usage_above_the_chunks_leaves_chunk_gaps(tmp_path: Path) -> None:
    arrivals = [(0.1, None), (0.2, None), (0.4, None)]
    summary = summary_of(tmp_path, **together(stream(1, 0.0, arrivals, output_tokens=7)))
    assert summary.itl_is_chunk_gap


def test_a_chunk_without_a_new_token_gives_its_wait_to_the_next(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.10, 1), (0.12, 0), (0.20, 2)]))
    summary = summary_of(tmp_path, **rows)
    assert (summary.itl.n, summary.itl.mean) == (2, pytest.approx(0.05))


def test_s15_a_reply_of_one_token_has_no_tpot_and_spoils_none(tmp_path: Path) -> None:
    replies = [stream(i, 0.0, [(0.1, 1), (0.2, 1), (0.3, 1)]) for i in (3, 4, 5)]
    rows = together(stream(1, 0.0, [(0.1, 1)]), ended(2, "ok", output_tokens=0), *replies)
    summary = summary_of(tmp_path, **rows)
    assert (summary.completed, summary.failed) == (5, 0)
    assert (summary.tpot.n, summary.tpot.mean) == (3, pytest.approx(0.1))
    assert summary.ttft.n == 4


def test_s16_refused_requests_stand_beside_the_latencies_and_not_in_them(tmp_path: Path) -> None:
    good = [stream(i, 0.0, [(0.750, 1)]) for i in range(66)]
    refused = [ended(100 + i, "refused", "connection refused", e2e_s=0.001) for i in range(34)]
    summary = summary_of(tmp_path, **together(*good, *refused))
    assert summary.e2e.n == 66
    assert summary.e2e.mean == pytest.approx(0.750)
    assert summary.failed_share == pytest.approx(0.34)
    assert summary.failures == {"connection refused": 34}
    assert summary.by_status == {"ok": 66, "refused": 34}


def test_tokens_of_a_failed_request_enter_no_gap(tmp_path: Path) -> None:
    good, bad = stream(1, 0.0, [(0.1, 1), (0.2, 1)]), stream(2, 0.0, [(0.1, 1), (9.0, 1)])
    bad["requests"][0].update(status="reset", reason="", ttft_s=None, tpot_s=None, e2e_s=None)
    summary = summary_of(tmp_path, **together(good, bad))
    assert summary.itl.mean == pytest.approx(0.1)
    assert summary.failures == {"reset": 1}


def test_what_the_person_stopped_is_cancelled_and_not_failed(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.1, 1)]), ended(2, "cancelled", "stopped by hand"))
    summary = summary_of(tmp_path, **rows)
    assert (summary.completed, summary.failed, summary.cancelled) == (1, 0, 1)
    assert summary.failures == {}


def test_warm_up_is_logged_and_not_counted(tmp_path: Path) -> None:
    rows = together(
        stream(0, 0.0, [(5.0, 1), (9.0, 1)], warmup=1), stream(1, 10.0, [(0.1, 1), (0.2, 1)])
    )
    load = load_rows((0.0, "warming_up", 1, 0), (10.0, "measuring", 1, 1), (12.0, "done", 1, 0))
    summary = summary_of(tmp_path, **rows, load=load)
    assert (summary.warmup_requests, summary.requests) == (1, 1)
    assert summary.ttft.mean == pytest.approx(0.1)
    assert summary.itl.n == 1
    assert summary.output_tokens_per_s == pytest.approx(1.0)


def test_tokens_per_second_count_what_arrived_while_the_target_was_held(tmp_path: Path) -> None:
    arrivals = [(i * 0.1, 1) for i in range(1, 31)]  # 0.1 to 3.0 s
    load = load_rows(
        (0.0, "measuring", 1, 0),
        (0.55, "measuring", 1, 1),
        (1.55, "measuring", 1, 0),
        (2.05, "measuring", 1, 1),
        (2.55, "draining", 1, 0),
        (3.00, "done", 1, 0),
    )
    summary = summary_of(tmp_path, **together(stream(1, 0.0, arrivals)), load=load)
    assert summary.held_s == pytest.approx(1.5)
    assert summary.output_tokens_per_s == pytest.approx(15 / 1.5)


def test_a_run_that_drains_is_held_until_its_first_stream_ends(tmp_path: Path) -> None:
    rows = together(*(stream(i, 0.0, [(0.1, 1), (0.2, 1), (0.4, 1)]) for i in range(4)))
    load = load_rows(
        (0.0, "warming_up", 4, 1),
        (0.05, "measuring", 4, 1),
        (0.05001, "draining", 4, 1),
        (0.25, "draining", 4, 0),
        (0.5, "done", 4, 0),
    )
    summary = summary_of(tmp_path, **rows, load=load)
    assert summary.held_s == pytest.approx(0.2)
    assert summary.output_tokens_per_s == pytest.approx(8 / 0.2)


def test_nothing_held_gives_no_throughput_and_not_zero(tmp_path: Path) -> None:
    load = load_rows((0.0, "measuring", 8, 0), (1.0, "done", 8, 0))
    summary = summary_of(tmp_path, **together(stream(1, 0.0, [(0.1, 1)])), load=load)
    assert summary.output_tokens_per_s is None
    assert summary.held_s == 0


def test_a_run_that_was_cut_off_is_held_until_its_last_record(tmp_path: Path) -> None:
    load = load_rows((0.0, "measuring", 1, 1))
    rows = together(stream(1, 0.0, [(1.0, 1), (2.0, 1), (4.0, 1)]))
    rows["requests"] = []
    summary = summary_of(tmp_path, **rows, load=load)
    assert summary.held_s == pytest.approx(4.0)
    assert summary.output_tokens_per_s == pytest.approx(2 / 4.0)  # the end itself is outside


def test_throughput_takes_the_mean_where_only_the_usage_of_a_reply_is_known(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.5, None), (1.5, None)], output_tokens=8))
    load = load_rows((0.0, "measuring", 1, 1), (1.0, "draining", 1, 0))
    summary = summary_of(tmp_path, **rows, load=load)
    assert summary.output_tokens_per_s == pytest.approx(4.0)
    assert summary.output_chunks_per_s == pytest.approx(1.0)


def test_throughput_is_none_where_no_token_is_ever_counted(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.5, None)]))
    load = load_rows((0.0, "measuring", 1, 1), (1.0, "draining", 1, 0))
    summary = summary_of(tmp_path, **rows, load=load)
    assert summary.output_tokens_per_s is None
    assert summary.output_chunks_per_s == pytest.approx(1.0)


def test_streams_in_flight_are_averaged_while_the_target_was_held(tmp_path: Path) -> None:
    client = [{"at_s": t, "in_flight": n} for t, n in ((0.5, 1), (1.5, 8), (2.5, 6), (3.5, 2))]
    load = load_rows((0.0, "measuring", 8, 0), (1.0, "measuring", 8, 1), (3.0, "draining", 8, 0))
    assert summary_of(tmp_path, client=client, load=load).in_flight_mean == pytest.approx(7.0)


def test_a_moved_slider_gives_figures_for_each_concurrency(tmp_path: Path) -> None:
    rows = together(
        stream(1, 0.0, [(0.1, 1), (0.2, 1)], concurrency=1),
        stream(2, 1.0, [(0.3, 1), (0.6, 1)], concurrency=8),
        stream(3, 1.0, [(0.5, 1), (0.8, 1)], concurrency=8),
    )
    load = load_rows((0.0, "measuring", 1, 1), (1.0, "measuring", 8, 1), (2.0, "done", 8, 0))
    summary = summary_of(tmp_path, **rows, load=load)
    one, eight = summary.levels
    assert summary.concurrency is None
    assert (one.concurrency, one.completed, one.ttft.mean) == (1, 1, pytest.approx(0.1))
    assert (eight.concurrency, eight.completed, eight.ttft.mean) == (8, 2, pytest.approx(0.4))
    assert eight.output_tokens_per_s == pytest.approx(4.0)
    assert eight.itl.mean == pytest.approx(0.3)


def test_a_slider_that_stayed_gives_no_breakdown(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, **together(stream(1, 0.0, [(0.1, 1)], concurrency=8)))
    assert (summary.concurrency, summary.levels) == (8, ())


def test_a_client_that_read_chunks_together_is_said_to_be_too_slow(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.01 * i, 1) for i in range(1, 51)]))
    rows["tokens"][7]["burst"] = 2
    rows["tokens"][8]["burst"] = 2
    summary = summary_of(tmp_path, **rows)
    assert summary.burst_share == pytest.approx(0.04)
    assert "4.0% of the chunks shared a read" in summary.marks[0]


def test_a_client_that_lags_is_said_to_be_too_slow(tmp_path: Path) -> None:
    rows = together(stream(1, 0.0, [(0.1, 1)], client_lag_s=0.0123))
    (mark,) = summary_of(tmp_path, **rows).marks
    assert "12.3 ms" in mark


def test_a_light_run_has_no_marks(tmp_path: Path) -> None:
    assert summary_of(tmp_path, **together(stream(1, 0.0, [(0.1, 1)]))).marks == ()


def test_an_empty_run_has_a_summary_of_nothing(tmp_path: Path) -> None:
    document = as_json(summary_of(tmp_path))
    assert document["requests"] == 0
    assert document["failed_share"] is None
    assert document["ttft_s"]["mean"] is None
    assert document["output_tokens_per_s"] is None
    assert document["burst_share"] is None


def test_the_json_form_names_units_and_is_json(tmp_path: Path) -> None:
    rows = together(*(stream(i, 0.0, [(0.1, 1), (0.2, 1)]) for i in range(25)))
    document = json.loads(json.dumps(as_json(summary_of(tmp_path, **rows)), allow_nan=False))
    assert document["ttft_s"]["p50"] == pytest.approx(0.1)
    assert document["ttft_s"]["p90"] == pytest.approx(0.1)
    assert document["ttft_s"]["rough"] == ["p90"]
    assert document["ttft_s"]["p99"] is None
    assert document["itl_s"]["n"] == 25
    assert document["levels"] == []


def planned(load: dict[str, Any] | None = None, **prompts: Any) -> dict[str, Any]:
    return {"plan": {"load": load or {}, "prompts": prompts}}


def test_an_open_loop_has_the_time_from_plan_and_a_closed_one_has_none(tmp_path: Path) -> None:
    waits = (0.0, 0.4, 0.8)
    rows = together(*(stream(n, 1.0 + w, [(0.5, 1)], planned_s=1.0) for n, w in enumerate(waits)))
    opened = write_run(tmp_path / "open", record=planned({"rate": 10.0}), **rows)
    summary = summarize(read(opened))
    assert summary.rate == 10.0
    assert summary.e2e.mean == pytest.approx(0.5)
    assert (summary.from_plan.n, summary.from_plan.mean) == (3, pytest.approx(0.9))
    assert as_json(summary)["from_plan_s"]["mean"] == pytest.approx(0.9)
    closed = summarize(read(write_run(tmp_path / "closed", record=planned(), **rows)))
    assert (closed.rate, closed.from_plan.n, closed.from_plan.mean) == (None, 0, None)


def test_a_request_that_was_never_sent_has_no_time_from_plan(tmp_path: Path) -> None:
    rows = together(stream(1, 1.0, [(0.5, 1)], planned_s=1.0), ended(2, "cancelled", planned_s=1.1))
    folder = write_run(tmp_path / "run", record=planned({"rate": 10.0}), **rows)
    summary = summarize(read(folder))
    assert (summary.from_plan.n, summary.cancelled, summary.failed) == (1, 1, 0)


def test_requests_that_were_due_and_never_sent_are_said(tmp_path: Path) -> None:
    rows = together(
        stream(1, 1.0, [(0.5, 1)], planned_s=1.0),
        *(ended(n, "cancelled", planned_s=1.1) for n in (2, 3)),
        ended(4, "cancelled", planned_s=1.0, sent_s=1.0),
    )
    load = {"rate": 10.0, "concurrency": 1}
    opened = summarize(read(write_run(tmp_path / "open", record=planned(load), **rows)))
    (told,) = opened.marks
    assert told == (
        "2 requests were due and never sent: no more than 1 could be in flight, and the run ended "
        "before their turn."
    )
    closed = summarize(read(write_run(tmp_path / "closed", record=planned(), **rows)))
    assert closed.marks == ()


def marks_of(folder: Path, record: dict[str, Any], **figures: Any) -> tuple[str, ...]:
    parts = [
        stream(number, number * 1.0, [(0.1, 1), (0.2, 1)], prompt_id=f"p-{number % 2}", **figures)
        for number in range(6)
    ]
    return summarize(read(write_run(folder, record=record, **together(*parts)))).marks


def test_s26_repeated_prompts_are_said_with_their_cached_tokens(tmp_path: Path) -> None:
    record = planned(unique_prefix=False)
    (told,) = marks_of(tmp_path / "a", record, prompt_tokens=100, cached_tokens=80)
    assert told == (
        "Prompts without a unique prefix, 2 different in 6 requests: 480 of 600 prompt tokens came "
        "from the prefix cache."
    )
    (untold,) = marks_of(tmp_path / "b", record, prompt_tokens=100)
    assert untold == (
        "Prompts without a unique prefix, 2 different in 6 requests: the server does not say how "
        "many tokens came from its prefix cache."
    )


@pytest.mark.parametrize("record", [{}, planned(unique_prefix=True), {"plan": "damaged"}])
def test_s26_with_unique_prefixes_there_is_nothing_to_say(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    assert marks_of(tmp_path / "run", record, prompt_tokens=100, cached_tokens=0) == ()


def test_s24_replies_that_the_models_length_cut_are_said_with_the_numbers(tmp_path: Path) -> None:
    record = planned({"max_tokens": 2045})
    figures = {"prompt_tokens": 8, "output_tokens": 2040, "finish_reason": "length"}
    (told,) = marks_of(tmp_path / "cut", record, **figures)
    assert told == (
        "6 replies were cut before their 2,045 tokens: a prompt of 8 left room for 2,040 within "
        "the 2,048 of the model."
    )
    assert marks_of(tmp_path / "end", record, **{**figures, "finish_reason": "stop"}) == ()
    assert marks_of(tmp_path / "all", record, **{**figures, "output_tokens": 2045}) == ()
