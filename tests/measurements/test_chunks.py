"""What of an event's data is text, tokens, an end or an error."""

import json
from typing import Any

import pytest

from measurements.chunks import Chunk, NotAChunkError, Usage, decode, error_message, excerpt


def chunk(value: Any) -> Chunk:
    return decode(json.dumps(value).encode())


def delta(**fields: Any) -> Chunk:
    return chunk({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": fields}]})


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"content": "", "reasoning": "", "tool_calls": []}}]},
        {"choices": [{"delta": {"tool_calls": None}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {}}]},
        {"choices": [{"text": ""}]},
        {"choices": []},
        {"choices": None},
        {},
    ],
)
def test_a_role_nothing_and_null_are_no_tokens(value: Any) -> None:
    assert chunk(value).pieces == ()


def test_content_and_text_are_content() -> None:
    assert delta(content="A").pieces == (("content", "A"),)
    assert chunk({"choices": [{"index": 0, "text": "B"}]}).pieces == (("content", "B"),)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_goes_by_both_names(name: str) -> None:
    assert delta(**{name: "hm", "content": None}).pieces == (("reasoning", "hm"),)


def test_reasoning_under_both_names_at_once_is_counted_once() -> None:
    assert delta(reasoning="hm", reasoning_content="hm").pieces == (("reasoning", "hm"),)


def test_a_tool_call_is_text_as_soon_as_it_has_a_name() -> None:
    named = {"index": 0, "id": "c1", "function": {"name": "look_up", "arguments": ""}}
    assert delta(content=None, tool_calls=[named]).pieces == (("tool", "look_up"),)
    more = {"index": 0, "function": {"arguments": '{"a"'}}
    assert delta(tool_calls=[more]).pieces == (("tool", '{"a"'),)


def test_finish_reason_id_and_usage_are_kept() -> None:
    found = chunk(
        {
            "id": "chatcmpl-1",
            "choices": [{"delta": {"content": "A"}, "finish_reason": "length"}],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 2},
            },
        }
    )
    assert (found.finish_reason, found.response_id) == ("length", "chatcmpl-1")
    assert found.usage == Usage(9, 4, 2)


def test_usage_may_lack_its_details() -> None:
    assert chunk({"usage": {"completion_tokens": 1}}).usage == Usage(None, 1, None)
    assert chunk({"usage": {"prompt_tokens_details": None}}).usage == Usage(None, None, None)
    assert chunk({"usage": None}).usage is None


def test_the_engines_own_share_of_the_first_token_is_read() -> None:
    found = chunk({"choices": [], "metrics": {"queue_time_ms": 1.5, "time_to_first_token_ms": 20}})
    assert (found.queue_ns, found.prefill_ns) == (1_500_000, 20_000_000)
    assert chunk({"metrics": {"queue_time_ms": None}}).queue_ns is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"error": {"message": "engine failed", "code": 500}}, "engine failed"),
        ({"error": "overloaded"}, "overloaded"),
        ({"object": "error", "message": "too long", "code": 400}, "too long"),
        ({"error": {"code": 500}}, "500"),
        ({"error": {"metadata": {}}}, "an error without a message"),
        ({"object": "error"}, "an error without a message"),
        ({"error": {"message": {"detail": "deep"}}}, "deep"),
    ],
)
def test_an_error_is_known_in_any_of_its_forms(value: Any, message: str) -> None:
    assert chunk(value).error == message


def test_a_null_error_is_none() -> None:
    assert chunk({"error": None, "choices": [{"delta": {"content": "A"}}]}).error is None


@pytest.mark.parametrize("data", [b"<html>", b"[1]", b'{"choices": 3}', b'{"a": ', b"\xff"])
def test_what_is_no_chunk_is_said_with_its_beginning(data: bytes) -> None:
    with pytest.raises(NotAChunkError, match="no chunk"):
        decode(data)


def test_an_error_body_gives_its_message_as_one_line() -> None:
    assert error_message(b'{"error": {"message": "no such\\nmodel"}}') == "no such model"
    assert error_message(b'{"detail": "Not Found"}') == "Not Found"
    assert error_message(b"Bad\r\nGateway") == "Bad Gateway"
    assert error_message(b"[]") == "[]"


def test_an_excerpt_is_short_and_survives_bad_bytes() -> None:
    assert excerpt(b"x" * 1000) == "x" * 200 + "…"
    assert excerpt(b"a\xffb") == "a\ufffdb"


NEST = b'{"error":' + b"[" * 200_000


def test_a_nest_of_lists_is_no_chunk_and_has_no_message() -> None:
    with pytest.raises(NotAChunkError, match="recursion"):
        decode(NEST)
    assert error_message(NEST).startswith('{"error":[[')


@pytest.mark.parametrize("milliseconds", [1e308, -5.0])
def test_an_absurd_time_of_the_engine_is_not_measured(milliseconds: float) -> None:
    assert chunk({"metrics": {"queue_time_ms": milliseconds}}).queue_ns is None


def test_a_long_reason_is_kept_whole_and_an_endless_one_is_not() -> None:
    reason = "Please reduce the length of the prompt. " * 8
    assert error_message(json.dumps({"error": {"message": reason}}).encode()) == reason.strip()
    assert len(error_message(json.dumps({"error": "x" * 10_000}).encode())) < 600
