from pathlib import Path

import pytest

from engine_launcher.log_tail import LogTail


def tail_of(folder: Path, content: bytes, **options: int) -> LogTail:
    (folder / "log").write_bytes(content)
    return LogTail(folder / "log", **options)


def test_a_log_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    assert tail.poll() == []
    (tmp_path / "log").write_text("first\n")
    assert tail.poll() == ["first"]


def test_lines_come_once_and_only_when_they_are_whole(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, b"one\ntw")
    assert tail.poll() == ["one"]
    assert tail.current == "tw"
    with (tmp_path / "log").open("ab") as file:
        file.write(b"o\nthree\n")
    assert tail.poll() == ["two", "three"]
    assert tail.poll() == []
    assert list(tail.lines) == ["one", "two", "three"]


def test_a_progress_bar_is_one_line_that_updates(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, b"\rLoading: 50%")
    assert tail.poll() == []
    assert tail.view() == ["Loading: 50%"]
    with (tmp_path / "log").open("ab") as file:
        file.write(b"\rLoading: 100%\n")
    assert tail.poll() == ["Loading: 100%"]
    assert tail.view() == ["Loading: 100%"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[0;36m(APIServer)\x1b[0m ready\n", "(APIServer) ready"),
        (b"\x1b]0;title\x07text\n", "text"),
        (b"\x1b[2K\x1b[1Gdone\x08\n", "done"),
        (b"windows\r\n", "windows"),
        ("▄▄ █ 你好\n".encode(), "▄▄ █ 你好"),
        ("a\u2028b\u0085c\n".encode(), "a\u2028b\u0085c"),
        (b"bad \xff byte\n", "bad \ufffd byte"),
        (b"tab\there\n", "tab\there"),
    ],
)
def test_a_line_reads_as_on_a_terminal(tmp_path: Path, raw: bytes, shown: str) -> None:
    assert tail_of(tmp_path, raw).poll() == [shown]


def test_a_character_may_be_cut_by_the_end_of_the_file(tmp_path: Path) -> None:
    whole = "über\n".encode()
    tail = tail_of(tmp_path, whole[:1])
    assert (tail.poll(), tail.current) == ([], "")
    (tmp_path / "log").write_bytes(whole)
    assert tail.poll() == ["über"]


def test_a_hundred_thousand_lines_stay_bounded_in_view_and_in_each_poll(tmp_path: Path) -> None:
    content = b"".join(b"line %d of a noisy engine\n" % n for n in range(100_000))
    tail = tail_of(tmp_path, content, keep=500)
    polls = []
    while new := tail.poll():
        polls.append(len(new))
    assert sum(polls) == 100_000
    assert max(polls) < 20_000
    assert len(tail.lines) == 500
    assert tail.lines[-1] == "line 99999 of a noisy engine"


def test_a_huge_backlog_is_skipped_and_said(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 200_000)
    first = tail.poll()[0]
    assert "3,222,884 bytes left out" in first
    assert "log file" in first


def test_a_line_without_an_end_does_not_grow_for_ever(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, b"z" * 1_000_000)
    for _ in range(5):
        assert tail.poll() == []
    assert len(tail.current) == 64 * 1024
