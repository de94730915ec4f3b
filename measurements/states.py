"""The state machine of one run. A new run is a new machine."""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run stands."""

    IDLE = "idle"
    WARMING_UP = "warming_up"
    MEASURING = "measuring"
    DRAINING = "draining"
    DONE = "done"
    ABORTED = "aborted"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether nothing can follow."""
        return not TRANSITIONS[self]


_ENDS = frozenset({RunState.ABORTED, RunState.FAILED})

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.IDLE: frozenset({RunState.WARMING_UP, RunState.MEASURING}) | _ENDS,
    RunState.WARMING_UP: frozenset({RunState.MEASURING, RunState.DRAINING}) | _ENDS,
    RunState.MEASURING: frozenset({RunState.DRAINING}) | _ENDS,
    RunState.DRAINING: frozenset({RunState.DONE}) | _ENDS,
    RunState.DONE: frozenset(),
    RunState.ABORTED: frozenset(),
    RunState.FAILED: frozenset(),
}


class ForbiddenTransitionError(RuntimeError):
    """A step that the table does not have: a fault of ours, never of the user."""


def step(current: RunState, following: RunState) -> RunState:
    """Return `following` if the table allows it after `current`."""
    if following not in TRANSITIONS[current]:
        raise ForbiddenTransitionError(f"a run cannot go from {current} to {following}")
    return following
