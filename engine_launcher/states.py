"""The state machine of one engine."""

from enum import StrEnum


class EngineState(StrEnum):
    """Where an engine stands."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    UNRESPONSIVE = "unresponsive"
    STOPPING = "stopping"
    FAILED = "failed"


_S = EngineState

TRANSITIONS: dict[EngineState, frozenset[EngineState]] = {
    _S.STOPPED: frozenset({_S.STARTING, _S.READY}),  # READY straight away: attached to a URL
    _S.FAILED: frozenset({_S.STARTING, _S.READY}),
    _S.STARTING: frozenset({_S.READY, _S.STOPPING, _S.FAILED}),
    _S.READY: frozenset({_S.UNRESPONSIVE, _S.STOPPING, _S.FAILED}),
    _S.UNRESPONSIVE: frozenset({_S.READY, _S.STOPPING, _S.FAILED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.FAILED}),
}


class ForbiddenTransitionError(RuntimeError):
    """A step that the table does not have: a fault of ours, never of the user."""


def step(current: EngineState, following: EngineState) -> EngineState:
    """Return `following` if the table allows it after `current`."""
    if following not in TRANSITIONS[current]:
        raise ForbiddenTransitionError(f"an engine cannot go from {current} to {following}")
    return following
