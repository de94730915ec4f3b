from pathlib import Path

import pytest
from hand_written_runs import load_rows, together, write_run
from window.runs import read_on, steady_stream, write_steady_run

from app.charts.live_run import LiveRun
from measurements.run_folder.reader import read
from measurements.summary import summarize


@pytest.mark.parametrize("bytes_a_poll", [300, 1 << 20])
def test_the_newest_level_has_the_figures_that_the_summary_gives_it(
    tmp_path: Path, bytes_a_poll: int
) -> None:
    slow = (steady_stream(number, 0.1 * number) for number in range(10))
    quick = (
        steady_stream(number, 0.1 * number, tokens=3, concurrency=8) for number in range(10, 30)
    )
    load = load_rows((0.0, "measuring", 1, 1), (1.0, "measuring", 8, 1), (3.0, "done", 8, 0))
    folder = write_run(tmp_path / "run", load=load, **together(*slow, *quick))
    run = read_on(LiveRun(), folder, bytes_a_poll)
    level, tally = run.levels.newest()
    numbers, said = tally.numbers(), summarize(read(folder)).levels[-1]
    assert level == said.concurrency == 8
    assert numbers.counts.completed == said.completed == 20
    assert numbers.ttft.mean == pytest.approx(said.ttft.mean)
    assert numbers.itl.n == said.itl.n == 40
    assert numbers.output_tokens_per_s == pytest.approx(said.output_tokens_per_s)
    assert run.tally.numbers().counts.completed == 30
    assert list(run.picture.moves_s) == [1.0]


def test_a_run_with_one_target_has_no_levels(tmp_path: Path) -> None:
    assert read_on(LiveRun(), write_steady_run(tmp_path / "run")).levels.newest() is None
