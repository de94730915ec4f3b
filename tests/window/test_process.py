"""The window as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_until

EXIT_LIMIT_S = 15.0
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "QT_QPA_PLATFORM": "offscreen",
        "LATENCY_LAB_HOME": str(tmp_path / "lab"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    with subprocess.Popen([sys.executable, "-m", "app"], cwd=ROOT, env=environment) as running:
        yield running
        running.kill()


def handles(process: subprocess.Popen[bytes], number: int) -> bool:
    """Whether the window is up and has taken over this signal."""
    assert process.poll() is None
    status = Path(f"/proc/{process.pid}/status").read_text()
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_signal_closes_the_window_with_exit_code_0(process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: handles(process, signal.SIGTERM))
    process.send_signal(signal.SIGTERM)
    assert process.wait(EXIT_LIMIT_S) == 0


def test_the_window_gives_way_to_the_measurement(process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: handles(process, signal.SIGTERM))
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(os.nice(0) + 10, 19)
