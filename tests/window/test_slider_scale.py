import pytest

from app.panels.slider_scale import LAST_POSITION, STREAMS, position_of, streams_at


def test_the_low_end_has_a_step_for_each_number() -> None:
    assert [streams_at(position) for position in range(16)] == list(range(1, 17))


def test_the_slider_ends_at_256() -> None:
    assert streams_at(LAST_POSITION) == 256


def test_values_rise_with_the_position() -> None:
    assert list(STREAMS) == sorted(set(STREAMS))


@pytest.mark.parametrize("position", range(LAST_POSITION + 1))
def test_a_position_survives_the_way_there_and_back(position: int) -> None:
    assert position_of(streams_at(position)) == position


@pytest.mark.parametrize(("typed", "shown"), [(17, 16), (100, 96), (131, 128), (250, 256), (1, 1)])
def test_a_number_between_two_steps_shows_at_the_nearest(typed: int, shown: int) -> None:
    assert streams_at(position_of(typed)) == shown


def test_positions_outside_count_as_the_nearest() -> None:
    assert (streams_at(-3), streams_at(999)) == (1, 256)
