"""What can be pressed: a function of the states and of nothing else."""

from dataclasses import dataclass

from engine_launcher.states import EngineState
from measurements.states import RunState

_S = EngineState
_AT_REST = frozenset({_S.STOPPED, _S.FAILED})
_UP = frozenset({_S.STARTING, _S.READY, _S.UNRESPONSIVE})


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything that decides what can be pressed."""

    engine: EngineState = EngineState.STOPPED
    connecting: bool = False  # attaching: the engine's state stays at rest until it answers
    run: RunState | None = None  # of the run under way; None where there is none
    closing: bool = False

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self.run is not None and not self.run.over


@dataclass(frozen=True, kw_only=True)
class Enabled:
    """One flag a control, or a group of controls."""

    engine_form: bool
    start_engine: bool
    stop_engine: bool
    load_form: bool  # what is fixed while a run goes on
    concurrency: bool
    run: bool
    stop_run: bool
    open_run: bool
    export: bool


def enabled(now: Situation) -> Enabled:
    """Return what can be pressed now."""
    free = not now.closing
    at_rest = now.engine in _AT_REST
    return Enabled(
        engine_form=free and at_rest,
        start_engine=free and at_rest,
        stop_engine=free and (now.connecting or now.engine in _UP),
        load_form=free and not now.running,
        concurrency=free and now.run is not RunState.DRAINING,
        run=free and not now.running and now.engine is _S.READY,
        stop_run=free and now.running and now.run is not RunState.DRAINING,
        open_run=free and not now.running,
        export=free,
    )
