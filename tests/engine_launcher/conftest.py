from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.engine_waiting import living

from engine_launcher import sweep
from engine_launcher.engine import Engine
from engine_launcher.supervisor import read_process


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path / "engines")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _nothing_outlives_a_test(tmp_path: Path) -> Iterator[None]:
    yield
    left = living(tmp_path)
    sweep.kill(process for pid in left if (process := read_process(pid)))
    assert left == []
