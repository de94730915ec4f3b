"""The run folder as it is written."""

import csv
import errno
import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from measurements.reply import Ending, Figures, Notice, Status, Token
from measurements.run_folder import columns
from measurements.run_folder.writer import Ended, Lines, Sent, Writer, field, text_field, write_json
from measurements.states import RunState

BEGAN = 5_000_000_000


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path, BEGAN)
    yield writer
    writer.close()


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ended(**fields: object) -> Ended:
    values: dict[str, object] = {
        "request_id": 3,
        "concurrency": 8,
        "warmup": False,
        "planned_ns": BEGAN + 1,
        "sent_ns": BEGAN + 2_000_000,
        "connect_ns": 1_500,
        "figures": Figures(),
        "ending": Ending(Status.OK),
        "http_status": 200,
        "prompt_id": "short-1",
        **fields,
    }
    return Ended(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(columns.FILES))
def test_each_file_has_its_header_from_the_beginning(
    tmp_path: Path, writer: Writer, name: str
) -> None:
    assert (tmp_path / name).read_text() == ",".join(columns.FILES[name]) + "\n"


def test_a_send_is_a_row_in_seconds_since_the_run_began(tmp_path: Path, writer: Writer) -> None:
    writer.sent(
        Sent(
            request_id=3,
            planned_ns=BEGAN + 1,
            sent_ns=BEGAN + 1_234_567_891,
            concurrency=8,
            warmup=True,
            prompt_id="short-1",
        )
    )
    writer.flush()
    assert (tmp_path / "sends.csv").read_text().splitlines()[1] == (
        "3,0.000000001,1.234567891,8,1,0,short-1"
    )


def test_tokens_are_rows_and_their_text_is_kept_piece_by_piece(
    tmp_path: Path, writer: Writer
) -> None:
    pieces = (("reasoning", 'a "b"\n'), ("content", "ü🙂\u2028"))
    token = Token(2, BEGAN + 70_000_000, None, "content", 1, "kernel", pieces)
    writer.tokens(3, BEGAN + 20_000_000, [token, token._replace(number=3, tokens=4)])
    writer.flush()
    assert (tmp_path / "tokens.csv").read_text().splitlines()[1:] == [
        "3,2,0.070000000,0.050000000,,content,1,kernel",
        "3,3,0.070000000,0.050000000,4,content,1,kernel",
    ]
    lines = (tmp_path / "text.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:2]] == [
        {"request_id": 3, "at_s": 0.07, "kind": "reasoning", "text": 'a "b"\n'},
        {"request_id": 3, "at_s": 0.07, "kind": "content", "text": "ü🙂\u2028"},
    ]


def test_what_came_without_text_is_a_row_of_its_own(tmp_path: Path, writer: Writer) -> None:
    sent = BEGAN + 20_000_000
    writer.notices(3, sent, [Notice(sent + 5, "role"), Notice(sent + 1_000_000_000, "done")])
    writer.flush()
    assert (tmp_path / "events.csv").read_text().splitlines()[1:] == [
        "3,0.020000005,0.000000005,role",
        "3,1.020000000,1.000000000,done",
    ]


def test_text_can_be_switched_off(tmp_path: Path) -> None:
    writer = Writer(tmp_path, BEGAN, keep_text=False)
    writer.tokens(3, BEGAN, [Token(0, BEGAN, 1, "content", 1, "user", (("content", "a"),))])
    writer.close()
    assert not (tmp_path / "text.jsonl").exists()
    assert len(rows(tmp_path, "tokens.csv")) == 1


def test_what_was_not_measured_is_empty_and_never_0(tmp_path: Path, writer: Writer) -> None:
    writer.ended(ended(connect_ns=None, sent_ns=None, http_status=None))
    writer.flush()
    (row,) = rows(tmp_path, "requests.csv")
    known = {name: value for name, value in row.items() if value}
    assert known == {
        "request_id": "3",
        "concurrency": "8",
        "warmup": "0",
        "planned_s": "0.000000001",
        "status": "ok",
        "prompt_id": "short-1",
    }


def test_a_request_is_a_row_with_every_figure(tmp_path: Path, writer: Writer) -> None:
    figures = Figures(
        ttft_ns=50_000_000,
        ttft_answer_ns=60_000_000,
        tpot_ns=12_500_000.4,
        e2e_ns=150_000_000,
        queue_ns=0,
        prefill_ns=20_000_000,
        prompt_tokens=8,
        cached_tokens=0,
        output_tokens=9,
        finish_reason="stop",
        response_id="chatcmpl-1",
        client_lag_ns=30_000,
        clock="kernel",
    )
    writer.ended(ended(figures=figures))
    writer.flush()
    assert (tmp_path / "requests.csv").read_text().splitlines()[1] == (
        "3,chatcmpl-1,8,0,0.000000001,0.002000000,0.000001500,0.000000000,0.020000000,0.050000000,"
        "0.060000000,0.012500000,0.150000000,8,0,9,stop,ok,200,,0.000030000,kernel,short-1"
    )


def test_load_and_client_rows(tmp_path: Path, writer: Writer) -> None:
    writer.load(BEGAN + 1, RunState.WARMING_UP, 8, held=False)
    writer.client(BEGAN + 1, (3, None, 0.00025))
    writer.flush()
    assert (tmp_path / "load.csv").read_text().endswith("\n0.000000001,warming_up,8,0\n")
    assert (tmp_path / "client.csv").read_text().endswith("\n0.000000001,3,,0.00025\n")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("plain", "plain"),
        ("a, b", '"a, b"'),
        ('say "a"', '"say ""a"""'),
        ("two\r\nlines", "two lines"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", "' x"),
    ],
)
def test_text_is_one_line_that_no_spreadsheet_runs(text: str, field: str) -> None:
    assert text_field(text) == field


def test_a_reason_with_every_nasty_character_comes_back_from_a_csv_reader(
    tmp_path: Path, writer: Writer
) -> None:
    reason = '=cmd|"/c calc", then\na line; ü🙂'
    writer.ended(ended(ending=Ending(Status.STREAM_ERROR, reason)))
    writer.flush()
    (row,) = rows(tmp_path, "requests.csv")
    assert row["reason"] == "'" + reason.replace("\n", " ")


def test_rows_are_on_disk_after_a_flush_and_the_files_must_be_new(
    tmp_path: Path, writer: Writer
) -> None:
    with pytest.raises(FileExistsError):
        Writer(tmp_path, BEGAN)


def test_a_disk_that_is_full_loses_no_whole_row_and_the_rest_follows_when_there_is_room(
    tmp_path: Path,
) -> None:
    lines = Lines(tmp_path / "rows.csv", "header\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        lines.add("row " * 40 + "\n")
        with pytest.raises(OSError, match="large") as raised:
            lines.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert raised.value.errno == errno.EFBIG
    assert (tmp_path / "rows.csv").read_text().startswith("header\nrow ")
    lines.flush()
    lines.close()
    assert (tmp_path / "rows.csv").read_text() == "header\n" + "row " * 40 + "\n"


def test_json_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"state": "idle"})
    write_json(path, {"state": "done"})
    assert json.loads(path.read_bytes()) == {"state": "done"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_total_of_billions_keeps_its_last_digits() -> None:
    assert field(4_123_456_789.0) == "4123456789"
    assert field(123456789.625) == "123456789.625"
    assert field(0.1) == "0.1"
