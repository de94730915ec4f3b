import pytest
from window.runs import batch, steady_stream

from app.charts.live_run import LiveRun


def test_an_end_that_is_seen_before_the_last_tokens_loses_none_of_them() -> None:
    rows = steady_stream(0, 0.0, tokens=6)
    run = LiveRun()
    run.feed(batch(sends=rows["sends"], tokens=rows["tokens"][:3], requests=rows["requests"]))
    run.feed(batch(tokens=rows["tokens"][3:]))
    run.feed(batch())
    assert run.tally.numbers().itl.n == 5


def test_ends_wait_while_a_past_run_is_read_in_portions() -> None:
    rows = steady_stream(0, 0.0, tokens=6)
    run = LiveRun()
    run.feed(batch(sends=rows["sends"], requests=rows["requests"], more=True))
    for token in rows["tokens"]:
        run.feed(batch(tokens=[token], more=True))
    assert run.tally.numbers().ttft.n == 0
    run.feed(batch())
    assert run.tally.numbers().itl.n == 5


def test_streams_in_flight_are_counted_as_soon_as_they_end() -> None:
    rows = steady_stream(0, 0.0)
    run = LiveRun()
    run.feed(batch(sends=rows["sends"]))
    assert run.in_flight == 1
    run.feed(batch(requests=rows["requests"]))
    assert run.in_flight == 0


def test_a_request_that_has_ended_stays_so_when_its_last_tokens_come() -> None:
    rows = steady_stream(0, 0.0)
    run = LiveRun()
    run.feed(batch(sends=rows["sends"], requests=rows["requests"]))
    run.feed(batch(tokens=rows["tokens"]))
    assert run.recent.rows()[0].state == "ok"
    assert run.recent.rows()[0].tokens == 5


def test_the_version_rises_with_what_comes_and_rests_otherwise() -> None:
    run = LiveRun()
    run.feed(batch())
    assert run.version == 0
    run.feed(batch(sends=steady_stream(0, 0.0)["sends"]))
    assert run.version == 1


def test_the_engines_own_figures_are_the_newest() -> None:
    run = LiveRun()
    assert run.kv_usage is None
    metrics = [{"at_s": 1.0, "kv_usage": 0.1}, {"at_s": 2.0, "kv_usage": 0.25, "running": 8}]
    run.feed(batch(server_metrics=metrics))
    assert run.kv_usage == pytest.approx(0.25)
    assert run.engine_running == 8
    assert run.engine_waiting is None


def test_damaged_lines_are_counted() -> None:
    from dataclasses import replace

    run = LiveRun()
    run.feed(replace(batch(), damaged=2))
    run.feed(replace(batch(), damaged=1))
    assert run.damaged == 3
