"""What the worker says about itself."""

import pytest

from measurements.client_watch import ClientWatch
from measurements.run_folder.columns import CLIENT


def row(watch: ClientWatch, in_flight: int = 0) -> dict[str, float | None]:
    return dict(zip(CLIENT[1:], watch.row(in_flight), strict=True))


def test_nothing_read_is_empty() -> None:
    found = row(ClientWatch())
    assert found["lag_p50_s"] is found["lag_p99_s"] is found["burst_share"] is None


def test_lag_percentiles_are_right_to_their_bin() -> None:
    watch = ClientWatch()
    for number in range(100):
        watch.note_lag(number * 100_000)  # 0 to 9.9 ms
    found = row(watch, 5)
    assert found["in_flight"] == 5
    assert found["lag_p50_s"] == pytest.approx(4.9e-3, abs=2.1e-5)
    assert found["lag_p99_s"] == pytest.approx(9.8e-3, abs=2.1e-5)


def test_the_burst_share_is_that_of_chunks_that_shared_a_read() -> None:
    watch = ClientWatch()
    for chunks in (1, 1, 1, 3):
        watch.note_chunks(chunks)
    assert row(watch)["burst_share"] == 0.5


def test_loop_lag_is_the_worst_of_the_second_and_each_row_begins_anew() -> None:
    watch = ClientWatch()
    watch.note_tick(2_000_000)
    watch.note_tick(1_000_000)
    watch.note_lag(5)
    assert row(watch)["loop_lag_s"] == 0.002
    found = row(watch)
    assert found["loop_lag_s"] == 0
    assert found["lag_p50_s"] is None


def test_the_cpu_share_is_a_share() -> None:
    watch = ClientWatch()
    share = row(watch)["cpu_share"]
    assert share is not None
    assert 0 <= share < 4
