"""How long a stream rests after a failure, and when a run gives up."""

from measurements.patience import GIVE_UP_AFTER, GIVE_UP_NOT_BEFORE_NS, REST_NS, Patience
from measurements.reply import Ending, Status

GOOD = Ending(Status.OK)
REFUSED = Ending(Status.REFUSED, "no connection to 127.0.0.1:1: refused")
BUSY = Ending(Status.HTTP_ERROR, "HTTP 503: busy")
TOO_LONG = Ending(Status.HTTP_ERROR, "HTTP 400: 8 + 2045 tokens are more than 2048")


def test_a_good_reply_is_followed_at_once() -> None:
    assert Patience().note(GOOD, 200, 5, now_ns=7) == 7


def test_a_failure_without_a_token_is_followed_by_a_rest() -> None:
    assert Patience().note(BUSY, 503, 0, now_ns=7) == 7 + REST_NS


def test_a_reply_that_gave_tokens_and_then_broke_is_followed_at_once() -> None:
    assert Patience().note(Ending(Status.RESET, "lost"), 200, 3, now_ns=7) == 7


def test_while_a_server_is_down_all_streams_together_try_once_a_rest() -> None:
    patience = Patience()
    for _ in range(8):
        patience.note(REFUSED, None, 0, now_ns=0)
    tries = sum(patience.may_try(now_ns) for now_ns in range(0, 1_000_000_000, 1_000_000))
    assert tries == 1_000_000_000 // REST_NS


def test_many_failures_in_a_row_over_some_time_end_the_run() -> None:
    patience = Patience()
    for _ in range(GIVE_UP_AFTER + 54):
        patience.note(REFUSED, None, 0, now_ns=0)
    assert patience.sentence == ""  # all streams at once, in one moment
    patience.note(REFUSED, None, 0, now_ns=GIVE_UP_NOT_BEFORE_NS)
    assert "in a row failed, the last: no connection to 127.0.0.1:1: refused." in patience.sentence


def test_a_good_reply_between_failures_keeps_the_run_alive() -> None:
    patience = Patience()
    for second in range(100):
        ending, status = (GOOD, 200) if second % 3 == 0 else (BUSY, 503)
        patience.note(ending, status, int(second % 3 == 0), now_ns=second * 1_000_000_000)
    assert patience.sentence == ""
    assert patience.may_try(0)


def test_a_request_that_the_server_does_not_accept_ends_the_run_after_the_first_reply() -> None:
    patience = Patience()
    patience.note(TOO_LONG, 400, 0, now_ns=0)
    assert patience.sentence == (
        "The server does not accept the request: HTTP 400: 8 + 2045 tokens are more than 2048."
    )


def test_one_prompt_that_is_not_accepted_among_good_ones_ends_nothing() -> None:
    patience = Patience()
    patience.note(GOOD, 200, 1, now_ns=0)
    patience.note(TOO_LONG, 400, 0, now_ns=1)
    assert patience.sentence == ""
