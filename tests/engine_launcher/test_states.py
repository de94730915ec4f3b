import itertools

import pytest

from engine_launcher.states import TRANSITIONS, EngineState, ForbiddenTransitionError, step

PAIRS = tuple(itertools.product(EngineState, repeat=2))
ALLOWED = {
    ("stopped", "starting"),
    ("stopped", "ready"),
    ("failed", "starting"),
    ("failed", "ready"),
    ("starting", "ready"),
    ("starting", "stopping"),
    ("starting", "failed"),
    ("ready", "unresponsive"),
    ("ready", "stopping"),
    ("ready", "failed"),
    ("unresponsive", "ready"),
    ("unresponsive", "stopping"),
    ("unresponsive", "failed"),
    ("stopping", "stopped"),
    ("stopping", "failed"),
}


@pytest.mark.parametrize(("current", "following"), PAIRS)
def test_a_step_is_taken_or_refused_as_the_table_says(
    current: EngineState, following: EngineState
) -> None:
    if (current, following) in ALLOWED:
        assert step(current, following) is following
    else:
        with pytest.raises(ForbiddenTransitionError):
            step(current, following)


def test_no_state_is_a_dead_end() -> None:
    assert all(TRANSITIONS[state] for state in EngineState)
