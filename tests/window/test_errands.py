import os
import sys
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from waiting import wait_until

from app.window.errands import Errands
from app.window.lag import Lag


def test_work_is_done_aside_and_handed_over_by_the_poll() -> None:
    errands, done = Errands(), []

    def take(future: Future[Any]) -> None:
        done.append((future.result(), threading.current_thread()))

    errands.run(threading.current_thread, take)
    assert errands.busy
    wait_until(lambda: errands.poll() or done)
    worker, collector = done[0]
    assert worker is not collector
    assert collector is threading.main_thread()
    assert not errands.busy
    errands.close()


def test_an_exception_comes_back_in_the_future() -> None:
    errands, found = Errands(), []

    def fail() -> None:
        raise ValueError("no")

    def take(future: Future[Any]) -> None:
        found.append(str(future.exception()))

    errands.run(fail, take)
    wait_until(lambda: errands.poll() or found)
    assert found == ["no"]
    errands.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for each thread")
def test_errands_keep_the_niceness_of_their_beginning(tmp_path: Any) -> None:
    script = tmp_path / "nice.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "from app.window.errands import Errands\n"
        "errands = Errands()\n"
        "os.nice(7)\n"
        "ask = [sys.executable, '-c', 'import os; print(os.nice(0))']\n"
        "here = subprocess.check_output(ask, text=True).strip()\n"
        "found = []\n"
        "errands.run(lambda: subprocess.check_output(ask, text=True).strip(),\n"
        "            lambda future: found.append(future.result()))\n"
        "while not found: errands.poll()\n"
        "errands.close()\n"
        "print(here, found[0])\n"
    )
    import subprocess

    words = subprocess.check_output([sys.executable, str(script)], text=True).split()
    before = os.nice(0)
    assert [int(word) for word in words] == [before + 7, before]


def test_lag_is_the_longest_delay_and_the_longest_tick() -> None:
    lag = Lag()
    lag.note(0.0, 0.002, 0.033)
    lag.note(0.033, 0.034, 0.033)
    lag.note(0.083, 0.088, 0.033)
    assert lag.late_s == pytest.approx(0.017)
    assert lag.busy_s == pytest.approx(0.005)


def test_lag_forgets_what_is_long_past() -> None:
    lag = Lag()
    lag.note(0.0, 1.0, 0.033)
    for tick in range(200):
        lag.note(2 + tick * 0.033, 2.001 + tick * 0.033, 0.033)
    assert lag.busy_s == pytest.approx(0.001)
