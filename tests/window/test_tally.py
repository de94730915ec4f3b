from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hand_written_runs import ended, load_rows, together, write_run
from window.runs import batch, read_on, steady_stream, write_steady_run

from app.charts.gaps import GapTracker
from app.charts.live_run import LiveRun
from app.charts.pool import Pool
from app.charts.tally import Numbers, Tally
from measurements.run_folder.reader import read
from measurements.statistics import Figures, figures
from measurements.summary import summarize


def flat(figures_: Figures) -> dict[str, object]:
    """All figures as one flat dict, as pytest compares them to the last bits of a float."""
    nested = asdict(figures_)
    found = {name: nested[name] for name in ("n", "requests", "mean")}
    for name in ("p50", "p90", "p99"):
        found |= {f"{name} {key}": value for key, value in (nested[name] or {}).items()}
    return found


def tallied(*streams: dict, **tables: list[dict]) -> Numbers:
    tally = Tally()
    given = batch(**together(*streams), **tables)
    tally.feed(given, GapTracker().feed(given.tokens), 10.0)
    return tally.numbers()


@pytest.mark.parametrize("bytes_a_poll", [300, 5_000, 1 << 20])
def test_the_numbers_are_the_summarys_however_the_log_is_read(
    tmp_path: Path, bytes_a_poll: int
) -> None:
    folder = write_steady_run(tmp_path / "run", requests=120)
    numbers = read_on(LiveRun(), folder, bytes_a_poll).tally.numbers()
    summary = summarize(read(folder))
    assert numbers.counts.completed == summary.completed == 119
    for name in ("ttft", "itl", "tpot", "e2e"):
        assert flat(getattr(numbers, name)) == pytest.approx(flat(getattr(summary, name)))
    assert numbers.output_tokens_per_s == pytest.approx(summary.output_tokens_per_s)
    assert numbers.itl_is_chunk_gap is summary.itl_is_chunk_gap is False


def test_usage_at_the_end_makes_gaps_of_chunks_latencies_of_tokens(tmp_path: Path) -> None:
    rows = steady_stream(0, 0.0)
    for row in rows["tokens"]:
        row["tokens"] = None
    folder = write_run(tmp_path / "run", **rows)
    assert read_on(LiveRun(), folder).tally.numbers().itl_is_chunk_gap is False


def test_chunks_without_any_count_stay_chunk_gaps() -> None:
    rows = steady_stream(0, 0.0)
    for row in rows["tokens"]:
        row["tokens"] = np.nan
    rows["requests"][0]["output_tokens"] = np.nan
    numbers = tallied(rows)
    assert numbers.itl_is_chunk_gap is True
    assert numbers.itl.n == 4


def test_a_request_in_flight_is_counted_and_measured_only_when_it_ends() -> None:
    rows = steady_stream(0, 0.0)
    tally, tracker = Tally(), GapTracker()
    open_part = batch(sends=rows["sends"], tokens=rows["tokens"])
    tally.feed(open_part, tracker.feed(open_part.tokens), 1.0)
    assert tally.numbers().itl.n == 0
    end = batch(requests=rows["requests"])
    tally.feed(end, tracker.feed(end.tokens), 1.0)
    assert tally.numbers().itl.n == 4


def test_failures_are_counted_by_reason_and_enter_no_latency() -> None:
    numbers = tallied(
        steady_stream(0, 0.0),
        steady_stream(1, 1.0, status="reset", reason="reset by the server"),
        ended(2, "refused"),
        ended(3, "cancelled"),
    )
    assert dict(numbers.failures) == {"reset by the server": 1, "refused": 1}
    assert (numbers.ttft.n, numbers.itl.n) == (1, 4)
    assert (numbers.counts.failed, numbers.counts.cancelled) == (2, 1)


def test_warm_up_is_counted_beside() -> None:
    numbers = tallied(steady_stream(0, 0.0, warmup=1), steady_stream(1, 1.0))
    assert (numbers.counts.warmup, numbers.counts.sent, numbers.ttft.n) == (1, 1, 1)


def test_tokens_per_second_are_of_held_time_alone() -> None:
    load = load_rows((0.0, "measuring", 1, 0), (1.0, "measuring", 1, 1), (2.0, "draining", 1, 0))
    numbers = tallied(steady_stream(0, 0.0), steady_stream(1, 1.2), load=load)
    assert numbers.output_tokens_per_s == pytest.approx(5.0)


def test_before_anything_was_held_there_is_no_rate() -> None:
    assert tallied(steady_stream(0, 0.0)).output_tokens_per_s is None


def test_a_small_pool_is_exact() -> None:
    values = np.random.default_rng(2).gamma(2.0, 0.01, 1500)
    pool = Pool()
    pool.add(values[:700])
    pool.add(values[700:])
    assert flat(pool.figures()) == pytest.approx(flat(figures(values)))


def test_a_large_pool_keeps_no_samples_and_is_right_to_half_a_percent() -> None:
    values = np.random.default_rng(3).gamma(2.0, 0.01, 30_000)
    pool = Pool(exact_up_to=1000)
    for part in np.split(values, 30):
        pool.add(part)
    found, true = pool.figures(), figures(values)
    assert not pool.exact
    assert (found.n, found.mean) == (30_000, pytest.approx(true.mean))
    for name in ("p50", "p90", "p99"):
        assert getattr(found, name).value == pytest.approx(getattr(true, name).value, rel=0.005)


def test_a_pool_leaves_out_what_was_not_measured() -> None:
    pool = Pool()
    pool.add(np.array([0.1, np.nan, np.inf]))
    assert pool.figures().n == 1


def test_shared_reads_and_the_clients_lag_are_watched(tmp_path: Path) -> None:
    rows = steady_stream(0, 0.0, tokens=4)
    rows["tokens"][1]["burst"] = 2
    folder = write_run(tmp_path / "run", **rows)
    numbers = read_on(LiveRun(), folder).tally.numbers()
    assert numbers.burst_share == summarize(read(folder)).burst_share == pytest.approx(0.25)
