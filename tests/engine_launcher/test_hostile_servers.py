"""Whatever answers at a URL, attaching ends in a sentence or in sane values."""

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.engine_waiting import until
from fakes.hostile_server import HostileServer, json_answer

from engine_launcher.engine import Engine
from engine_launcher.settings import EngineSettings
from engine_launcher.view import EngineView

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def attached_to(engine: Engine, server: HostileServer, limit_s: float = 2.0) -> EngineView:
    engine.attach(
        EngineSettings(kind="attached", url=server.url, served_name="", start_limit_s=limit_s)
    )
    until(lambda: engine.poll().state == "ready" or engine.view.sentence)
    return engine.view


def listing(**entry: Any) -> bytes:
    return json_answer(json.dumps({"data": [entry]}).encode())


@pytest.mark.parametrize(
    "entry",
    [
        {"id": 7},
        {"id": ["a", "b"]},
        {"id": {"name": "x"}},
        {"id": "x" * 100_000},
        {"id": None},
    ],
    ids=["a number", "a list", "an object", "too long", "null"],
)
def test_a_model_list_without_usable_names_ends_in_a_sentence(
    engine: Engine, entry: dict[str, Any]
) -> None:
    with HostileServer(listing(**entry)) as server:
        view = attached_to(engine, server)
    assert view.state == "stopped"
    assert view.sentence
    assert "watcher" not in view.sentence


def test_absurd_figures_of_a_model_are_left_out(engine: Engine) -> None:
    absurd = {"root": ["/"], "max_model_len": "many", "owned_by": "vllm"}
    with HostileServer(listing(id="a/b", **absurd)) as server:
        view = attached_to(engine, server, limit_s=10.0)
    assert (view.state, view.served_model) == ("ready", "a/b")
    assert "max_model_len" not in view.figures


@pytest.mark.parametrize(
    "answer",
    [
        json_answer(b"[" * 100_000),
        json_answer(b"<html>", status="401 Unauthorized"),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["nested JSON", "401", "bad gzip", "no HTTP", "a redirect to nowhere"],
)
def test_answers_that_make_no_sense_end_in_a_sentence(engine: Engine, answer: bytes) -> None:
    with HostileServer(answer) as server:
        view = attached_to(engine, server)
    assert view.state == "stopped"
    assert view.sentence
    assert "watcher" not in view.sentence


def test_an_answer_without_an_end_is_not_kept_in_memory(engine: Engine) -> None:
    with HostileServer(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n") as server:
        view = attached_to(engine, server)
    assert "without an end" in view.sentence


def test_a_host_that_no_name_can_be_ends_in_a_sentence(engine: Engine, tmp_path: Path) -> None:
    for url in ("http://..", f"http://{'a' * 5000}"):
        engine.attach(EngineSettings(kind="attached", url=url, start_limit_s=1.0))
        until(lambda: engine.poll().sentence)
        assert "watcher" not in engine.view.sentence
