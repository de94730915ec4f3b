from pathlib import Path

import pytest
from fakes.fake_environment import fake_checkpoint
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QWidget
from pytestqt.qtbot import QtBot

from app.charts.recent import StreamRow
from app.charts.tally import Counts, Numbers
from app.panels.engine_panel import EnginePanel
from app.panels.kv_panel import KvPanel
from app.panels.load_panel import LoadPanel, choose_prompt_file
from app.panels.log_panel import MOST_LINES, LogPanel
from app.panels.numbers_panel import NumbersPanel
from app.panels.stream_panel import StreamPanel
from app.window.enabling import Situation, enabled
from engine_launcher.problems import Problem, use
from engine_launcher.settings import EngineSettings
from engine_launcher.states import EngineState
from engine_launcher.view import EngineView
from measurements.plan import Prompts
from measurements.states import RunState
from measurements.statistics import figures

LEFT = Qt.MouseButton.LeftButton


def shown(qtbot: QtBot, panel: QWidget) -> QWidget:
    qtbot.addWidget(panel)
    panel.resize(320, 640)
    panel.show()
    return panel


def retype(qtbot: QtBot, field: QWidget, text: str) -> None:
    field.setFocus()
    qtbot.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(field, text)


@pytest.fixture
def engine(qtbot: QtBot, tmp_path: Path) -> EnginePanel:
    return shown(qtbot, EnginePanel([tmp_path / "tiny-lm"], tmp_path / "tiny-lm"))


@pytest.fixture
def load(qtbot: QtBot) -> LoadPanel:
    return shown(qtbot, LoadPanel())


@pytest.fixture
def kv(qtbot: QtBot) -> KvPanel:
    return shown(qtbot, KvPanel())


@pytest.fixture
def streams(qtbot: QtBot) -> StreamPanel:
    return shown(qtbot, StreamPanel())


def view(state: EngineState, **more: object) -> EngineView:
    return EngineView(state=state, settings=EngineSettings(), **more)


# Engine


def test_start_asks_for_what_the_form_says(
    qtbot: QtBot, engine: EnginePanel, tmp_path: Path
) -> None:
    retype(qtbot, engine.port, "8123")
    qtbot.keyClick(engine.port, Qt.Key.Key_Return)
    retype(qtbot, engine.extra_arguments, "--max-num-seqs 4")
    with qtbot.waitSignal(engine.start_asked) as asked:
        qtbot.mouseClick(engine.start, LEFT)
    settings = asked.args[0]
    assert settings.model == str(tmp_path / "tiny-lm")
    assert (settings.port, settings.extra_arguments) == (8123, "--max-num-seqs 4")
    assert settings.max_model_len == 2048
    assert settings.eager is None


def test_a_model_may_be_typed(qtbot: QtBot, engine: EnginePanel) -> None:
    retype(qtbot, engine.model.lineEdit(), "owner/name")
    assert engine.settings().model == "owner/name"


def test_an_attached_engine_asks_for_a_url_alone(qtbot: QtBot, engine: EnginePanel) -> None:
    engine.kind.setFocus()
    qtbot.keyClick(engine.kind, Qt.Key.Key_End)
    assert engine.url.isVisible()
    assert not engine.port.isVisible()
    assert not engine.model.isVisible()
    assert engine.start.text() == "Attach"


def test_a_start_shows_phase_seconds_notes_and_command(engine: EnginePanel) -> None:
    engine.show_view(
        view(
            EngineState.STARTING,
            phase="loading weights",
            elapsed_s=12.4,
            notes=("Eager, since this is a CPU.",),
            command_line="python -m vllm",
        )
    )
    assert engine.status.text() == "loading weights · 12 s"
    assert engine.progress.isVisible()
    assert engine.notes.text() == "Eager, since this is a CPU."
    assert engine.command_line.text() == "python -m vllm"


def test_the_command_line_goes_to_the_clipboard(qtbot: QtBot, engine: EnginePanel) -> None:
    engine.show_view(view(EngineState.READY, command_line="python -m vllm --port 8000"))
    qtbot.mouseClick(engine.copy, LEFT)
    assert QGuiApplication.clipboard().text() == "python -m vllm --port 8000"


def test_an_offer_is_one_click(qtbot: QtBot, engine: EnginePanel) -> None:
    offers = use("port", 8001, "Use port 8001")
    engine.show_problems((Problem("port", "Port 8000 is taken: 8001 is free.", offers),))
    assert engine.error.text() == "Port 8000 is taken: 8001 is free."
    assert engine.offer.text() == "Use port 8001"
    qtbot.mouseClick(engine.offer, LEFT)
    assert engine.port.value() == 8001
    assert not engine.error.isVisible()
    assert not engine.offer.isVisible()


def test_a_failure_is_one_sentence_without_an_offer(engine: EnginePanel) -> None:
    engine.show_view(view(EngineState.FAILED, sentence="The engine ran out of memory."))
    assert engine.error.text() == "The engine ran out of memory."
    assert not engine.offer.isVisible()


# Load


def test_the_slider_goes_one_stream_at_a_time_at_the_low_end(qtbot: QtBot, load: LoadPanel) -> None:
    load.slider.setFocus()
    found = []
    load.concurrency_changed.connect(found.append)
    for _ in range(7):
        qtbot.keyClick(load.slider, Qt.Key.Key_Right)
    assert found == [2, 3, 4, 5, 6, 7, 8]
    assert load.load().concurrency == 8


def test_a_number_may_be_typed_and_moves_the_slider(qtbot: QtBot, load: LoadPanel) -> None:
    retype(qtbot, load.concurrency, "100")
    qtbot.keyClick(load.concurrency, Qt.Key.Key_Return)
    assert load.load().concurrency == 100
    assert load.slider.value() > 30


def test_a_load_is_what_the_form_says(qtbot: QtBot, load: LoadPanel) -> None:
    for field, text in ((load.max_tokens, "32"), (load.requests, "9"), (load.warmup, "0")):
        retype(qtbot, field, text)
        qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.mouseClick(load.ignore_eos, LEFT, pos=load.ignore_eos.rect().center() * 0.2)
    found = load.load()
    assert (found.max_tokens, found.requests, found.warmup) == (32, 9, 0)
    assert found.ignore_eos


def test_no_number_of_requests_means_until_stopped(load: LoadPanel) -> None:
    assert load.load().requests is None
    assert load.requests.text() == "until stopped"


def choose(qtbot: QtBot, box: QComboBox, text: str) -> None:
    box.setFocus()
    for _ in range(box.findText(text) - box.currentIndex()):
        qtbot.keyClick(box, Qt.Key.Key_Down)
    assert box.currentText() == text


def test_a_closed_loop_has_no_rate(load: LoadPanel) -> None:
    assert load.load().rate is None
    assert load.load().duration_s is None
    assert not load.rate.isEnabled()


@pytest.mark.parametrize("arrival", ["constant", "Poisson"])
def test_an_open_loop_has_a_rate_and_a_cap_out_of_its_way(
    qtbot: QtBot, load: LoadPanel, arrival: str
) -> None:
    retype(qtbot, load.concurrency, "8")
    qtbot.keyClick(load.concurrency, Qt.Key.Key_Return)
    choose(qtbot, load.loop, f"open loop, {arrival}")
    for field, text in ((load.rate, "2.5"), (load.duration, "30")):
        retype(qtbot, field, text)
        qtbot.keyClick(field, Qt.Key.Key_Return)
    found = load.load()
    assert (found.rate, found.arrival, found.duration_s) == (2.5, arrival.lower(), 30.0)
    assert found.concurrency == 256
    load.loop.setCurrentIndex(0)
    assert (load.load().rate, load.load().concurrency) == (None, 8)


def test_the_form_of_a_run_under_way_cannot_be_changed(load: LoadPanel) -> None:
    load.loop.setCurrentIndex(1)
    assert load.rate.isEnabled()
    going_on = Situation(engine=EngineState.READY, run=RunState.MEASURING)
    load.apply_enabled(enabled(going_on))
    assert not load.loop.isEnabled()
    assert not load.rate.isEnabled()
    assert not load.duration.isEnabled()


def test_prompts_have_a_unique_prefix_unless_they_share_one(qtbot: QtBot, load: LoadPanel) -> None:
    assert load.chosen_prompts().unique_prefix
    choose(qtbot, load.prompts, "shared prefix")
    assert load.chosen_prompts() == Prompts(source="shared", unique_prefix=False)


def test_letters_cannot_be_typed_into_a_number(qtbot: QtBot, load: LoadPanel) -> None:
    retype(qtbot, load.max_tokens, "abc")
    qtbot.keyClick(load.max_tokens, Qt.Key.Key_Return)
    assert load.load().max_tokens == 64


def test_a_prompt_file_is_shown_by_its_name(load: LoadPanel) -> None:
    choose_prompt_file(load.prompts, "/somewhere/mine.jsonl")
    assert load.prompts.currentText() == "mine.jsonl"
    assert load.chosen_prompts().source == "/somewhere/mine.jsonl"
    choose_prompt_file(load.prompts, "")
    assert load.chosen_prompts().source == "short"


def test_progress_and_counts_are_in_words(load: LoadPanel) -> None:
    counts = Counts(sent=5, completed=2, failed=1, tokens=320, warmup=2)
    load.show_run(RunState.MEASURING, counts, 2, 10)
    assert load.status.text() == "measuring · 3 of 10 requests"
    assert load.counts.text() == (
        "5 sent · 2 in flight · 2 done · 1 failed · 320 tokens · 2 warm-up"
    )
    assert (load.progress.value(), load.progress.maximum()) == (3, 10)
    failed = Counts(warmup=2, warmup_failed=1)
    load.show_run(RunState.FAILED, failed, 0, 10)
    assert load.counts.text().endswith("2 warm-up, 1 failed")
    load.show_run(RunState.DONE, counts, 2, 10)
    assert not load.progress.isVisible()


# KV


def test_the_calculator_answers_as_one_types(qtbot: QtBot, kv: KvPanel) -> None:
    assert kv.total.text() == "47,185,920 bytes"
    retype(qtbot, kv.batch, "8")
    assert kv.total.text() == "377,487,360 bytes"
    retype(qtbot, kv.batch, "1")
    assert kv.total.text() == "47,185,920 bytes"
    assert kv.gib.text() == "0.04395 GiB"


def test_bad_input_is_said_at_once_and_goes_when_it_is_mended(qtbot: QtBot, kv: KvPanel) -> None:
    retype(qtbot, kv.layers, "many")
    assert kv.error.text() == "Layers is a whole number above 0, not “many”."
    retype(qtbot, kv.layers, "30")
    assert not kv.error.isVisible()


def test_the_shape_comes_from_the_model(qtbot: QtBot, kv: KvPanel, tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 8,
        "hidden_size": 256,
        "torch_dtype": "float32",
        "vocab_size": 8192,
    }
    kv.set_model(str(fake_checkpoint(tmp_path / "tiny-lm", **config)))
    qtbot.mouseClick(kv.read, LEFT)
    assert [kv.layers.text(), kv.kv_heads.text(), kv.head_dim.text()] == ["8", "4", "32"]
    assert kv.dtype.currentData() == "fp32"
    assert kv.total.text() == f"{2 * 8 * 4 * 32 * 2048 * 4:,} bytes"
    assert "tiny-lm" in kv.notes.text()


def test_a_model_that_is_not_on_the_disk_is_one_sentence(qtbot: QtBot, kv: KvPanel) -> None:
    kv.set_model("owner/name")
    qtbot.mouseClick(kv.read, LEFT)
    assert kv.error.text().startswith("owner/name has no config.json")


def test_a_model_with_windows_is_answered_by_its_layers(
    qtbot: QtBot, kv: KvPanel, tmp_path: Path
) -> None:
    config = {
        "model_type": "mistral",
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "sliding_window": 512,
    }
    kv.set_model(str(fake_checkpoint(tmp_path / "windowed", **config)))
    qtbot.mouseClick(kv.read, LEFT)
    assert kv.total.text() == f"{2 * 4 * 4 * 32 * 512 * 2:,} bytes"
    assert kv.layers.text() == ""
    retype(qtbot, kv.layers, "4")
    assert kv.error.isVisible()  # by hand again: heads and dim are asked for


# Streams


def rows(*ids: int, **states: str) -> list[StreamRow]:
    return [
        StreamRow(request_id=number, sent_s=float(number), state=states.get(f"r{number}", "ok"))
        for number in ids
    ]


def test_a_stream_is_followed_to_its_end_and_then_the_newest_one(streams: StreamPanel) -> None:
    streams.show_rows(rows(2, 1, r2="waiting", r1="streaming"))
    assert streams.request_id() == 1
    streams.show_rows(rows(3, 2, 1, r3="streaming", r2="streaming", r1="streaming"))
    assert streams.request_id() == 1
    streams.show_rows(rows(3, 2, 1, r3="streaming", r2="streaming"))
    assert streams.request_id() == 3
    streams.show_rows(rows(3, 2, 1))
    assert streams.request_id() == 3


def test_before_anything_streams_the_newest_request_is_shown(streams: StreamPanel) -> None:
    streams.show_rows(rows(2, 1, r2="waiting", r1="waiting"))
    assert streams.request_id() == 2


def test_a_selected_request_stays_selected_while_others_come(
    qtbot: QtBot, streams: StreamPanel
) -> None:
    streams.show_rows(rows(3, 2, 1))
    place = streams.table.visualRect(streams.model.index(1, 0)).center()
    qtbot.mouseClick(streams.table.viewport(), LEFT, pos=place)
    assert streams.request_id() == 2
    streams.show_rows(rows(5, 4, 3, 2))
    assert streams.request_id() == 2
    assert not streams.newest.isChecked()


def test_text_grows_at_its_end(streams: StreamPanel) -> None:
    streams.show_text(1, "The KV")
    streams.show_text(1, "The KV cache")
    assert streams.text.toPlainText() == "The KV cache"
    streams.show_text(2, "Another")
    assert streams.text.toPlainText() == "Another"


def test_another_run_starts_the_list_afresh(streams: StreamPanel) -> None:
    streams.show_rows(rows(9, 8))
    streams.show_rows(rows(0))
    assert streams.model.rowCount() == 1
    streams.show_rows([])
    assert streams.request_id() is None


# Log


def test_the_log_stays_at_its_end(qtbot: QtBot) -> None:
    log = shown(qtbot, LogPanel())
    log.append([f"line {number}" for number in range(200)])
    bar = log.view.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_a_log_that_is_being_read_does_not_jump(qtbot: QtBot) -> None:
    log = shown(qtbot, LogPanel())
    log.append([f"line {number}" for number in range(200)])
    log.view.verticalScrollBar().setValue(10)
    log.append(["one more"])
    assert log.view.verticalScrollBar().value() == 10


def test_the_log_leaves_out_what_the_lab_itself_asks(qtbot: QtBot) -> None:
    log = shown(qtbot, LogPanel())
    asked = 'INFO: 127.0.0.1:4 - "{} HTTP/1.1" 200 OK'
    log.append([asked.format(line) for line in ("GET /health", "POST /v1/x", "GET /metrics")])
    assert log.view.toPlainText() == asked.format("POST /v1/x")


def test_the_log_is_bounded(qtbot: QtBot) -> None:
    log = shown(qtbot, LogPanel())
    log.append([f"line {number}" for number in range(MOST_LINES * 2)])
    assert log.view.blockCount() <= MOST_LINES
    assert log.view.toPlainText().endswith(f"line {MOST_LINES * 2 - 1}")


# Numbers


def test_numbers_stand_in_milliseconds_with_their_doubts(qtbot: QtBot) -> None:
    panel = shown(qtbot, NumbersPanel())
    counts = Counts(completed=50)
    panel.show_numbers(
        Numbers(
            ttft=figures([0.08] * 50),
            counts=counts,
            output_tokens_per_s=66.66,
            failures={"reset by the server": 2},
            burst_share=0.051,
            client_lag_p99_s=0.012,
        )
    )
    texts = [panel.table.item(0, column).text() for column in range(6)]
    assert texts == ["TTFT", "50", "80.0", "80.0", "~80.0", "-"]
    assert "too few" in panel.table.item(0, 5).toolTip()
    assert panel.rate.text() == "66.7 output tokens/s"
    assert panel.failures.text() == "reset by the server: 2"
    first, second = panel.doubts.text().splitlines()
    assert first == "5.1% of the chunks shared a read: their gaps are uncertain."
    assert "12.0 ms at p99" in second


def test_compilation_can_be_asked_for(qtbot: QtBot, engine: EnginePanel) -> None:
    engine.eager.setFocus()
    qtbot.keyClick(engine.eager, Qt.Key.Key_End)
    assert engine.settings().eager is False
