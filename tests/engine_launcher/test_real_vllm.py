"""The real engines with the tests' own model: a minute in all, most of it vLLM's start."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from fakes.engine_waiting import poll_until, until
from fakes.fake_environment import unused_port

from engine_launcher import environments, records, sweep
from engine_launcher.engine import Engine
from engine_launcher.settings import EngineKind, EngineSettings
from engine_launcher.view import EngineView

CHECKPOINT = Path(__file__).parents[2] / "checkpoints" / "tiny-lm"
BYTES_A_TOKEN = 4096  # 2 x 8 layers x 4 KV heads x head dim 32 x 2 bytes (bfloat16)
START_LIMIT_S = 300.0

pytestmark = pytest.mark.engine


def start(engine: Engine, kind: EngineKind) -> EngineView:
    if environments.find_engine(kind) is None or not CHECKPOINT.exists():
        pytest.skip("needs `make engine` and checkpoints/tiny-lm")
    engine.start(
        EngineSettings(
            kind=kind,
            model=str(CHECKPOINT),
            port=unused_port(),
            kv_cache_gib=0.5,
            max_model_len=512,
        )
    )
    view = poll_until(engine, "ready", "failed", limit_s=START_LIMIT_S)
    assert (view.state, view.sentence) == ("ready", "")
    return view


def members(folder: Path) -> list[int]:
    ((_, record),) = records.open_records(folder / "engines")
    return [process.pid for process in sweep.members(record)]


def gone(pids: list[int]) -> bool:
    return not any((process := records.read_process(pid)) and process.alive for pid in pids)


def stop(engine: Engine, _leader: int) -> None:
    engine.stop()
    assert poll_until(engine, "stopped", "failed").state == "stopped"


def kill_the_api_server(engine: Engine, leader: int) -> None:
    os.kill(leader, signal.SIGKILL)
    assert "SIGKILL" in poll_until(engine, "failed").sentence


@pytest.mark.parametrize("end", [stop, kill_the_api_server])
def test_vllm_becomes_ready_and_nothing_of_it_is_left_in_the_end(
    engine: Engine, tmp_path: Path, end: Callable[[Engine, int], None]
) -> None:
    view = start(engine, "vllm")
    assert (view.served_model, view.checkpoint, view.api) == ("tiny-lm", "tiny-lm", "chat")
    assert view.per_chunk_usage
    if view.device == "CPU":
        assert view.figures["kv_tokens"] == 2**29 / BYTES_A_TOKEN
    assert view.figures["max_concurrency"] == view.figures["kv_tokens"] / 512
    processes = members(tmp_path)
    assert len(processes) >= 3  # API server, engine core, worker
    end(engine, view.pid)
    assert gone(processes)


def test_transformers_serve_becomes_ready_and_answers_by_the_name_that_the_view_gives(
    engine: Engine, tmp_path: Path
) -> None:
    view = start(engine, "transformers")
    assert (view.checkpoint, view.per_chunk_usage) == ("tiny-lm", False)
    body = {
        "model": view.served_model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 2,
    }
    answer = httpx2.post(f"{view.base_url}/chat/completions", json=body, trust_env=False)
    assert answer.status_code == 200
    processes = members(tmp_path)
    stop(engine, view.pid)
    until(lambda: gone(processes))
