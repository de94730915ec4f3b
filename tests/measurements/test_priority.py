"""The worker's turn at the processor."""

import os
import sys

import pytest

from measurements import priority

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="schedulers differ")


def policy() -> int:
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def test_what_is_said_is_so_and_is_given_back_at_the_end() -> None:
    before = policy()
    with priority.first_in_line() as said:
        real_time = policy() == os.SCHED_RR
        assert said == (priority.REAL_TIME if real_time else priority.NORMAL)
    assert policy() == before


def test_a_system_that_grants_nothing_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with priority.first_in_line() as said:
        assert said == priority.NORMAL


def test_a_system_without_schedulers_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setscheduler")
    with priority.first_in_line() as said:
        assert said == priority.NORMAL
