import io
import json

from app.terminal import Progress, harmless


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class GoneTerminal(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError(5, "Input/output error")


def test_where_nobody_watches_a_step_is_shown_once() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    for done in range(5):
        progress.update("measuring", f"{done} done")
    progress.update("draining", "5 done")
    assert stream.getvalue() == "measuring  0 done\ndraining  5 done\n"


def test_on_a_terminal_one_line_is_written_over() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.update("measuring", "1 done")
    progress.update("measuring", "2 done")
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().split("\r\x1b[K") == ["", "measuring  1 done", "measuring  2 done"]


def test_a_line_that_stays_takes_the_place_of_the_updating_one() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.update("starting", "1 s")
    progress.say("ready")
    assert stream.getvalue().endswith("\r\x1b[Kready\n")


def test_a_terminal_that_has_gone_does_not_end_the_measurement() -> None:
    progress = Progress(GoneTerminal())
    progress.say("ready")
    progress.update("measuring", "")
    progress.clear()


def test_no_stderr_at_all_is_no_error() -> None:
    Progress(None).say("ready")


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    stream = Terminal()
    Progress(stream).say("a\x1b]0;title\x07b\u202ec\x9bd")
    assert stream.getvalue() == "\r\x1b[Ka\\u001b]0;title\\u0007b\\u202ec\\u009bd\n"


def test_json_means_the_same_after_it_was_made_harmless() -> None:
    value = {"reason": "\x1b[31m\x7f\x9b\u202e\u2028é\t"}
    assert json.loads(harmless(json.dumps(value, ensure_ascii=False))) == value
