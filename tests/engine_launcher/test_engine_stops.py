"""However an engine comes to its end, none of its processes outlives it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import lab_app
from fakes.engine_waiting import alive, living, pids, poll_until, until
from fakes.fake_environment import fake_settings, unused_port

from engine_launcher import records, sweep
from engine_launcher.engine import Engine, _outlived
from engine_launcher.problems import Refusal
from engine_launcher.supervisor import process_table

LEADER_AND_THREE = 4


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[subprocess.Popen]:
    command = [sys.executable, lab_app.__file__, str(tmp_path), "--clinging"]
    tests = str(Path(lab_app.__file__).parents[1])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": tests}
    ) as app:
        assert app.stdout.readline() == "starting\n"
        assert app.stdout.readline() == "ready\n"
        yield app
        app.kill()
    until(lambda: not living(tmp_path))


def record_of(folder: Path) -> records.Record:
    ((_, record),) = records.open_records(folder / "engines")
    return record


def test_stop_ends_children_that_ignore_term_or_left_the_session(
    engine: Engine, tmp_path: Path
) -> None:
    engine.start(fake_settings(tmp_path, "--clinging"))
    poll_until(engine, "ready")
    assert len(living(tmp_path)) == LEADER_AND_THREE
    engine.stop()
    view = poll_until(engine, "stopped", "failed")
    assert (view.state, view.sentence, view.survivors) == ("stopped", "", ())
    assert living(tmp_path) == []


def test_close_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engines")
    engine.start(fake_settings(tmp_path, "--clinging"))
    poll_until(engine, "ready")
    engine.close()
    assert engine.view.state == "stopped"
    assert living(tmp_path) == []


def test_close_during_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engines")
    engine.start(fake_settings(tmp_path, "--clinging", "--silent", "--deaf"))
    until(lambda: engine.poll() and len(pids(tmp_path)) == LEADER_AND_THREE)
    engine.close()
    assert engine.view.state == "stopped"
    assert living(tmp_path) == []


def test_a_close_hurries_a_long_grace(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engines")
    engine.start(fake_settings(tmp_path, "--silent", "--deaf", stop_grace_s=600.0))
    until(lambda: engine.poll() and pids(tmp_path))
    engine.close()  # would outlast the deadline of any test if it waited for the grace time
    assert engine.view.state == "stopped"


def test_stop_right_after_start_ends_a_leader_that_ignores_term(
    engine: Engine, tmp_path: Path
) -> None:
    engine.start(fake_settings(tmp_path, "--deaf", "--silent"))
    engine.stop()
    assert poll_until(engine, "stopped", "failed").state == "stopped"
    assert living(tmp_path) == []


def test_five_starts_right_after_five_stops_on_the_same_port(
    engine: Engine, tmp_path: Path
) -> None:
    settings = fake_settings(tmp_path, port=unused_port())
    for _ in range(5):
        engine.start(settings)
        poll_until(engine, "ready")
        engine.stop()
        assert poll_until(engine, "stopped", "failed").state == "stopped"
    assert len(pids(tmp_path)) == 5


def test_killing_the_app_ends_the_engine(lab: subprocess.Popen, tmp_path: Path) -> None:
    supervisor = record_of(tmp_path).supervisor_pid
    lab.kill()
    until(lambda: not living(tmp_path) and not alive(supervisor))


def test_killing_the_supervisor_ends_the_engine(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path, "--clinging"))
    poll_until(engine, "ready")
    os.kill(record_of(tmp_path).supervisor_pid, signal.SIGKILL)
    view = poll_until(engine, "failed")
    assert "supervisor was killed" in view.sentence
    assert living(tmp_path) == []


def test_a_leader_that_is_killed_takes_its_children_along(engine: Engine, tmp_path: Path) -> None:
    engine.start(fake_settings(tmp_path, "--clinging"))
    leader = poll_until(engine, "ready").pid
    os.kill(leader, signal.SIGKILL)
    view = poll_until(engine, "failed")
    assert "SIGKILL" in view.sentence
    assert str(view.log_path) in view.notes[-1]
    assert living(tmp_path) == []


def test_killing_app_and_supervisor_at_once_ends_the_engine(
    lab: subprocess.Popen, tmp_path: Path
) -> None:
    supervisor = record_of(tmp_path).supervisor_pid
    os.kill(lab.pid, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    lab.kill()
    until(lambda: not living(tmp_path))


def test_the_next_start_sweeps_what_a_dead_lab_left(
    lab: subprocess.Popen, engine: Engine, tmp_path: Path
) -> None:
    record = record_of(tmp_path)
    # All at once: nobody is left who could end the engine.
    os.kill(lab.pid, signal.SIGSTOP)
    children = [process.pid for process in process_table() if process.parent == lab.pid]
    (watcher,) = (pid for pid in children if pid != record.supervisor_pid)
    os.kill(watcher, signal.SIGKILL)
    os.kill(record.supervisor_pid, signal.SIGKILL)
    lab.kill()
    lab.wait()
    until(lambda: not alive(record.engine_pid))  # the leader dies with its parent
    left = living(tmp_path)
    assert len(left) == LEADER_AND_THREE - 1
    engine.start(fake_settings(tmp_path))
    assert not any(alive(pid) for pid in left)
    assert poll_until(engine, "ready").state == "ready"


def test_a_live_lab_keeps_its_engine_and_the_next_one_is_refused_its_port(
    lab: subprocess.Popen, engine: Engine, tmp_path: Path
) -> None:
    words = Path(f"/proc/{record_of(tmp_path).engine_pid}/cmdline").read_text().split("\0")
    port = int(words[words.index("--port") + 1])
    with pytest.raises(Refusal, match="another engine of the lab"):
        engine.start(fake_settings(tmp_path / "second", port=port))
    assert len(living(tmp_path)) == LEADER_AND_THREE
    assert lab.poll() is None


def test_a_record_with_a_used_again_session_number_matches_nobody(tmp_path: Path) -> None:
    stranger = records.Record(
        engine_id="no-such-engine",
        boot_id=records.boot_id(),
        started_utc="",
        command_line="",
        app_pid=0,
        app_start=0,
        engine_pid=os.getsid(0),
        engine_start=1,
    )
    (tmp_path / "old").mkdir()
    records.write(tmp_path / "old", stranger)
    assert sweep.members(stranger) == []
    assert sweep.sweep(tmp_path) == []
    assert list(records.open_records(tmp_path)) == []


def test_kill_spares_a_process_that_got_the_pid_later(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = records.read_process(child.pid)
        sweep.kill([process._replace(start_time=process.start_time - 1)])
        child.communicate(b"\n")
        assert child.returncode == 0


def test_what_outlives_kill_is_named_with_its_memory() -> None:
    (problem,) = _outlived([os.getpid()])
    assert f"pid {os.getpid()} (" in problem.sentence
    assert "GiB" in problem.sentence
    assert _outlived([2**22 + 1]) == ()


def test_an_engine_whose_folder_is_gone_is_stopped_all_the_same(
    engine: Engine, tmp_path: Path
) -> None:
    engine.start(fake_settings(tmp_path, "--clinging"))
    poll_until(engine, "ready")
    shutil.rmtree(tmp_path / "engines")
    engine.stop()
    assert poll_until(engine, "stopped", "failed").state == "stopped"
    assert living(tmp_path) == []
