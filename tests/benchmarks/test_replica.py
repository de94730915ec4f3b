"""What the comparison on one replica prints."""

from pathlib import Path

from hand_written_runs import stream, together, write_run

from benchmarks.replica import Means, Pass, table
from measurements.run_folder.reader import read
from measurements.summary import summarize


def test_both_clients_stand_beside_the_engines_own_means(tmp_path: Path) -> None:
    rows = together(stream(0, 1.0, [(0.1, 1), (0.12, 1)]))
    metrics = [
        {"at_s": 0.5, "ttft_sum_s": 0.0, "ttft_count": 0, "itl_sum_s": 0.0, "itl_count": 0},
        {"at_s": 2.0, "ttft_sum_s": 0.098, "ttft_count": 1, "itl_sum_s": 0.019, "itl_count": 1},
    ]
    lab = summarize(read(write_run(tmp_path, **rows, server_metrics=metrics)))
    both = Pass(concurrency=1, lab=lab, vllm=Means(0.2, 0.01), vllm_real_time=Means(0.102, 0.0202))
    *_, line = table([both])
    assert line == (
        "| 1 | 100.00 | 98.00 | 200.00 | 102.00 | 1.020 | 20.00 | 19.00 | 10.00 | 20.20 | 1.010 |"
    )


def test_what_the_engine_does_not_tell_is_empty(tmp_path: Path) -> None:
    lab = summarize(read(write_run(tmp_path, **together(stream(0, 1.0, [(0.1, 1), (0.12, 1)])))))
    same = Means(0.1, 0.02)
    *_, line = table([Pass(concurrency=8, lab=lab, vllm=same, vllm_real_time=same)])
    assert line.startswith("| 8 | 100.00 |  | 100.00 | 100.00 | 1.000 | 20.00 |  |")
