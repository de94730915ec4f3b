import pytest
from hand_written_runs import together
from window.runs import TTFT_S, batch, steady_stream

from app.charts.recent import MOST_CHARACTERS, MOST_REQUESTS, RecentRequests
from measurements.run_folder.tail import TextPiece


def fed(*streams: dict, text: tuple[TextPiece, ...] = ()) -> RecentRequests:
    recent = RecentRequests()
    given = batch(text, **together(*streams))
    recent.feed(given.sends, given.tokens, given.requests, given.text)
    return recent


def test_the_newest_request_comes_first_with_its_numbers() -> None:
    newest, _ = fed(steady_stream(0, 0.0), steady_stream(1, 1.0)).rows()
    assert (newest.request_id, newest.state) == (1, "ok")
    assert newest.ttft_s == pytest.approx(TTFT_S)
    assert newest.tokens_per_s == pytest.approx(100)


def test_a_request_waits_until_its_first_token() -> None:
    rows = steady_stream(0, 0.0)
    recent = RecentRequests()
    sent = batch(sends=rows["sends"])
    recent.feed(sent.sends, sent.tokens, sent.requests, [])
    assert recent.rows()[0].state == "waiting"
    streaming = batch(tokens=rows["tokens"][:2])
    recent.feed(streaming.sends, streaming.tokens, streaming.requests, [])
    assert recent.rows()[0].state == "streaming"
    assert recent.rows()[0].tokens == 2


def test_one_token_has_no_rate() -> None:
    assert fed(steady_stream(0, 0.0, tokens=1)).rows()[0].tokens_per_s is None


def test_the_text_is_what_came() -> None:
    pieces = tuple(TextPiece(0, 0.1, "content", word) for word in ("KV ", "cache"))
    assert fed(steady_stream(0, 0.0), text=pieces).text(0) == "KV cache"


def test_an_unknown_request_has_no_text() -> None:
    assert fed().text(7) == ""


def test_memory_is_bounded() -> None:
    many = [steady_stream(number, 0.0, tokens=1) for number in range(MOST_REQUESTS + 50)]
    pieces = tuple(TextPiece(249, 0.1, "content", "x" * 1000) for _ in range(100))
    recent = fed(*many, text=pieces)
    assert len(recent.rows()) == MOST_REQUESTS
    assert len(recent.text(249)) <= MOST_CHARACTERS + 1000
