import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements.run_folder import columns
from measurements.run_folder.tables import empty_table, parse, split_line

HEADER = ("request_id", "arrival_s", "tokens", "kind")


def test_lines_become_a_column_each() -> None:
    table, damaged = parse(HEADER, b"1,0.5,1,content\n2,0.75,4,reasoning\n", HEADER)
    assert damaged == 0
    assert table["arrival_s"].tolist() == [0.5, 0.75]
    assert table["request_id"].dtype == np.float64
    assert table["kind"].tolist() == ["content", "reasoning"]
    assert table["kind"].dtype == object


def test_an_empty_number_is_nan_and_an_empty_text_stays_empty() -> None:
    table, _ = parse(HEADER, b"1,,,\n,2.0,3,content\n", HEADER)
    assert math.isnan(table["arrival_s"][0])
    assert math.isnan(table["request_id"][1])
    assert table["kind"].tolist() == ["", "content"]


def test_columns_are_found_by_name_in_any_order_and_unknown_ones_are_left_out() -> None:
    table, damaged = parse(("kind", "new", "tokens"), b"tool,x,3\n", ("tokens", "kind"))
    assert damaged == 0
    assert list(table) == ["tokens", "kind"]
    assert (table["tokens"][0], table["kind"][0]) == (3.0, "tool")


def test_a_column_of_a_newer_version_is_empty_in_an_older_file() -> None:
    table, _ = parse(("request_id",), b"1\n2\n", ("request_id", "burst", "clock"))
    assert np.isnan(table["burst"]).all()
    assert table["clock"].tolist() == ["", ""]


@pytest.mark.parametrize(
    "line",
    [b"7,0.1,1", b"7,0.1,1,content,more", b"", b"7,0.1,x,content", b"\x00\xff,1,1,content"],
)
def test_a_damaged_line_is_left_out_and_counted(line: bytes) -> None:
    table, damaged = parse(HEADER, b"1,0.5,1,content\n" + line + b"\n2,0.6,1,content\n", HEADER)
    assert damaged == 1
    assert table["request_id"].tolist() == [1.0, 2.0]


def test_two_damaged_lines_that_make_up_for_each_other_are_both_left_out() -> None:
    table, damaged = parse(HEADER, b"1,0.5,1\n2,0.6,1,content,5\n3,0.7,1,content\n", HEADER)
    assert damaged == 2
    assert table["request_id"].tolist() == [3.0]


def test_quoted_fields_hold_commas_and_quotes() -> None:
    header = ("request_id", "reason", "tokens")
    lines = b'1,"HTTP 503, ""busy""",2\n2,plain,3\n'
    table, damaged = parse(header, lines, header)
    assert damaged == 0
    assert table["reason"].tolist() == ['HTTP 503, "busy"', "plain"]
    assert table["tokens"].tolist() == [2.0, 3.0]


def test_a_quote_that_does_not_close_costs_its_own_line_alone() -> None:
    header = ("request_id", "reason", "tokens")
    table, damaged = parse(header, b'1,a,2\n2,"b,3\n3,"c,d",4\n', header)
    assert damaged == 1
    assert table["reason"].tolist() == ["a", "c,d"]


def test_a_prompt_is_named_by_a_text() -> None:
    names = ("request_id", "prompt_id")
    table, damaged = parse(names, b"1,mixed-3\n2,7\n", names)
    assert (damaged, table["prompt_id"].tolist()) == (0, ["mixed-3", "7"])


def test_line_ends_of_another_system_are_read() -> None:
    table, damaged = parse(HEADER, b"1,0.5,1,content\r\n2,0.6,1,tool\r\n", HEADER)
    assert (damaged, table["kind"].tolist()) == (0, ["content", "tool"])


def test_unicode_line_separators_in_a_text_end_no_line() -> None:
    header = ("request_id", "reason")
    table, damaged = parse(header, "1,a\u2028b\u0085c\n".encode(), header)
    assert (damaged, table["reason"].tolist()) == (0, ["a\u2028b\u0085c"])


def test_no_line_at_all_is_an_empty_table() -> None:
    table, damaged = parse(HEADER, b"", HEADER)
    assert damaged == 0
    assert {name: len(column) for name, column in table.items()} == dict.fromkeys(HEADER, 0)


@pytest.mark.parametrize("name", columns.FILES)
def test_an_empty_table_has_every_column_of_its_file(name: str) -> None:
    table = empty_table(columns.FILES[name])
    assert tuple(table) == columns.FILES[name]
    assert tuple(split_line(",".join(table))) == columns.FILES[name]


ROWS = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.one_of(st.none(), st.floats(0, 1e6)),
        st.one_of(st.none(), st.integers(0, 99)),
        st.sampled_from(["content", "reasoning", "tool", ""]),
    )
)


@given(ROWS)
def test_what_was_written_is_what_is_read(rows: list[tuple[int, float, int, str]]) -> None:
    text = "".join(
        ",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows
    )
    table, damaged = parse(HEADER, text.encode(), HEADER)
    assert damaged == 0
    for i, name in enumerate(HEADER[:3]):
        written = [math.nan if row[i] is None else float(row[i]) for row in rows]
        np.testing.assert_array_equal(table[name], written)
    assert table["kind"].tolist() == [row[3] for row in rows]


@given(st.binary(max_size=300))
def test_any_bytes_give_a_table_and_a_count_and_no_error(data: bytes) -> None:
    table, damaged = parse(HEADER, data + b"\n", HEADER)
    assert damaged >= 0
    assert len({len(column) for column in table.values()}) == 1
