from dataclasses import fields

import pytest

from app.window.enabling import Enabled, Situation, enabled
from engine_launcher.states import EngineState
from measurements.states import RunState

E, R = EngineState, RunState


def pressable(**situation: object) -> set[str]:
    found = enabled(Situation(**situation))
    return {field.name for field in fields(Enabled) if getattr(found, field.name)}


AT_REST = {"engine_form", "start_engine", "load_form", "concurrency", "open_run", "export"}
UP = AT_REST - {"engine_form", "start_engine"} | {"stop_engine"}
BUSY = {"stop_engine", "concurrency", "stop_run", "export"}


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        ({"engine": E.STOPPED}, AT_REST),
        ({"engine": E.FAILED}, AT_REST),
        ({"engine": E.STOPPED, "connecting": True}, AT_REST | {"stop_engine"}),
        ({"engine": E.STARTING}, UP),
        ({"engine": E.READY}, UP | {"run"}),
        ({"engine": E.UNRESPONSIVE}, UP),
        ({"engine": E.STOPPING}, UP - {"stop_engine"}),
        ({"engine": E.READY, "run": R.IDLE}, BUSY),
        ({"engine": E.READY, "run": R.WARMING_UP}, BUSY),
        ({"engine": E.READY, "run": R.MEASURING}, BUSY),
        ({"engine": E.READY, "run": R.DRAINING}, {"stop_engine", "export"}),
        ({"engine": E.READY, "run": R.DONE}, UP | {"run"}),
        ({"engine": E.READY, "run": R.ABORTED}, UP | {"run"}),
        ({"engine": E.READY, "run": R.FAILED}, UP | {"run"}),
        (
            {"engine": E.FAILED, "run": R.MEASURING},
            BUSY - {"stop_engine"} | AT_REST - {"load_form", "open_run"},
        ),
    ],
)
def test_what_can_be_pressed_follows_from_the_states(situation: dict, expected: set[str]) -> None:
    assert pressable(**situation) == expected


@pytest.mark.parametrize("engine", list(E))
@pytest.mark.parametrize("run", [None, *R])
def test_nothing_can_be_pressed_while_the_window_closes(
    engine: EngineState, run: RunState | None
) -> None:
    assert pressable(engine=engine, run=run, closing=True) == set()


@pytest.mark.parametrize("engine", list(E))
@pytest.mark.parametrize("run", [None, *R])
def test_start_and_stop_exclude_each_other(engine: EngineState, run: RunState | None) -> None:
    found = pressable(engine=engine, run=run)
    assert not {"start_engine", "stop_engine"} <= found
    assert not {"run", "stop_run"} <= found
