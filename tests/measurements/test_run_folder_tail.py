import json
from pathlib import Path

import numpy as np
from hand_written_runs import load_rows, stream, together, write_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from measurements.run_folder import columns
from measurements.run_folder.tail import Batch, RunTail

HEADER = ",".join(columns.TOKENS) + "\n"


def token_line(request_id: int, index: int) -> str:
    return f"{request_id},{index},{index * 0.01:.9f},0.010000000,1,content,1,kernel\n"


def test_a_folder_without_files_has_no_rows_yet(tmp_path: Path) -> None:
    batch = RunTail(tmp_path / "not-there").poll()
    assert {len(batch.tokens["index"]), len(batch.requests["status"]), len(batch.text)} == {0}
    assert not batch.more


def test_each_poll_gives_what_came_since_the_last_one(tmp_path: Path) -> None:
    path, tail = tmp_path / "tokens.csv", RunTail(tmp_path)
    path.write_text(HEADER + token_line(1, 0))
    assert tail.poll().tokens["index"].tolist() == [0]
    assert tail.poll().tokens["index"].tolist() == []
    with path.open("a") as file:
        file.write(token_line(1, 1) + token_line(2, 0))
    assert tail.poll().tokens["request_id"].tolist() == [1, 2]


def test_a_line_is_taken_only_when_it_is_whole(tmp_path: Path) -> None:
    path, tail = tmp_path / "tokens.csv", RunTail(tmp_path)
    whole = HEADER + token_line(1, 0)
    taken = []
    with path.open("a", encoding="utf-8") as file:
        for character in whole:
            file.write(character)
            file.flush()
            taken.append(len(tail.poll().tokens["index"]))
    assert taken == [0] * (len(whole) - 1) + [1]


def test_quotes_hold_nothing_back(tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text('request_id,status,reason\n1,http_error,"a\n')
    (tmp_path / "text.jsonl").write_text(
        r'{"request_id":1,"at_s":0.5,"kind":"content","text":"5\" disk"}' + "\n"
    )
    tail = RunTail(tmp_path)
    batch = tail.poll()
    assert [piece.text for piece in batch.text] == ['5" disk']
    assert batch.damaged == 1
    assert tail.unfinished() == []


def test_a_poll_reads_a_bounded_number_of_bytes_and_says_that_there_is_more(tmp_path: Path) -> None:
    lines = [token_line(1, index) for index in range(500)]
    (tmp_path / "tokens.csv").write_text(HEADER + "".join(lines))
    tail = RunTail(tmp_path, bytes_a_poll=1000)
    batches = [tail.poll()]
    while batches[-1].more:
        batches.append(tail.poll())
    assert all(len(batch.tokens["index"]) <= 1000 // len(lines[0]) for batch in batches)
    read = np.concatenate([batch.tokens["index"] for batch in batches])
    assert read.tolist() == list(range(500))


def test_a_line_longer_than_a_poll_is_stepped_over_and_counted(tmp_path: Path) -> None:
    junk = "x" * 5000 + "\n"
    (tmp_path / "tokens.csv").write_text(HEADER + junk + token_line(1, 0))
    tail = RunTail(tmp_path, bytes_a_poll=1000)
    batches = [tail.poll() for _ in range(12)]
    assert sum(batch.damaged for batch in batches) > 0
    assert [i for batch in batches for i in batch.tokens["index"]] == [0]


def test_text_comes_in_pieces_as_it_was_written(tmp_path: Path) -> None:
    pieces = [
        {"request_id": 1, "at_s": 0.5, "kind": "content", "text": 'a\n"b"\u2028c 🙂'},
        {"request_id": 2, "at_s": 0.6, "kind": "tool", "text": ""},
    ]
    lines = [json.dumps(piece, ensure_ascii=False) + "\n" for piece in pieces]
    (tmp_path / "text.jsonl").write_text("".join(lines), encoding="utf-8")
    read = RunTail(tmp_path).poll().text
    assert [(p.request_id, p.at_s, p.kind, p.text) for p in read] == [
        (1, 0.5, "content", 'a\n"b"\u2028c 🙂'),
        (2, 0.6, "tool", ""),
    ]


def test_a_damaged_piece_of_text_is_left_out_and_counted(tmp_path: Path) -> None:
    good = b'{"request_id":1,"at_s":0.5,"kind":"content","text":"a"}\n'
    (tmp_path / "text.jsonl").write_bytes(good + b'{"request_id":\n\xff\n[1]\n' + good)
    batch = RunTail(tmp_path).poll()
    assert (len(batch.text), batch.damaged) == (2, 3)


def rows_of(batch: Batch) -> dict[str, int]:
    return {
        name: len(next(iter(getattr(batch, Path(name).stem).values()))) for name in columns.FILES
    }


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.floats(0, 1), max_size=6))
def test_however_a_file_grows_the_rows_come_once_and_in_order(
    tmp_path: Path, cuts: list[float]
) -> None:
    rows = together(*(stream(i, 0.0, [(0.1, 1), (0.2, 1), (0.3, 1)]) for i in range(4)))
    whole = write_run(tmp_path / "whole", **rows, load=load_rows((0.0, "measuring", 1, 1)))
    data = (whole / "tokens.csv").read_bytes()
    growing = tmp_path / "growing"
    growing.mkdir(exist_ok=True)
    (growing / "tokens.csv").write_bytes(b"")
    tail, read = RunTail(growing), []
    for cut in sorted([*cuts, 1.0]):
        (growing / "tokens.csv").write_bytes(data[: round(cut * len(data))])
        read += tail.poll().tokens["arrival_s"].tolist()
    assert read == [row["arrival_s"] for row in rows["tokens"]]
    assert rows_of(RunTail(whole).poll())["tokens.csv"] == 12
