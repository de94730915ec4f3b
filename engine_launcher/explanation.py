"""The log of an engine that ended → one sentence on why, and what to do."""

import re
import signal
from collections.abc import Iterable
from dataclasses import replace

from engine_launcher.known_causes import RULES
from engine_launcher.log_tail import clean
from engine_launcher.problems import Problem

_PREFIX = re.compile(
    r"^\((?:APIServer|EngineCore|Worker|VllmWorker)[^)]*\) ?"
    r"(?:(?:INFO|WARNING|ERROR|CRITICAL) \S+ \S+ \[[^\]]*\] ?)?"
)
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Exit|Found)|Exception)"
    r"(?:: (.*))?$"
)
_IN_VALIDATION = re.compile(r"^\s+(?:Value|Assertion) error, (.*?)(?: \[type=.*)?$")
_USAGE = re.compile(r"^[\w.\- ]+: error: (.*)$")
_ERROR_LINE = re.compile("|".join(p.pattern for p in (_EXCEPTION, _IN_VALIDATION, _USAGE)))
_CORE_GONE = re.compile(r"engine core exited unexpectedly")
_MODEL = re.compile(r"'model': '([^']+)'")

# What is said when something else, further up, has gone wrong.
_GENERIC = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|See stack trace"
    r"|EngineDeadError|EngineCore encountered an issue|validation errors? for"
    r"|engine core exited unexpectedly"
)
_MEMORY = "most often the machine ran out of memory: ask for less KV space or a smaller model."
_STOP_BEGINS = re.compile(r"\[shutdown\] API server: shutdown triggered")
_HEADLINE = 300  # characters


def explain(lines: Iterable[str], model: str = "the model") -> Problem | None:
    """Return why the engine failed: the root cause, not what fell over because of it.

    None where the log shows no failure; what a stop leaves behind in a log is none.
    """
    messages, named = _messages(lines)
    text = "\n".join(messages)
    for rule in RULES:
        if match := rule.pattern.search(text):
            problem = rule.say(match, named or model)
            return replace(problem, sentence=re.sub("^the ", "The ", problem.sentence))
    cause = _root_cause(messages)
    if not cause and _CORE_GONE.search(text):
        return Problem("", f"The engine's core was killed; {_MEMORY}")
    return Problem("", f"The engine failed: {_shortened(cause)}") if cause else None


def explain_status(status: int) -> str:
    """Return what an exit status says by itself: a code, or a signal as a negative number."""
    if status == -signal.SIGKILL:
        return f"The engine was killed (SIGKILL); {_MEMORY}"
    if status < 0:
        return f"The engine was ended by {signal.Signals(-status).name}; its log does not say why."
    return f"The engine ended with exit code {status}; its log does not say why."


def _messages(lines: Iterable[str]) -> tuple[list[str], str]:
    """Return the lines that carry an error, without their prefixes, and the model if named."""
    messages: list[str] = []
    model = ""
    for line in lines:
        if _STOP_BEGINS.search(line):
            break
        if named := _MODEL.search(line):
            model = named[1]
        bare = _PREFIX.sub("", clean(line))
        if _ERROR_LINE.match(bare) or _CORE_GONE.search(bare):
            messages.append(bare.strip())
    return messages, model


def _root_cause(messages: list[str]) -> str:
    """Return the last message before the first generic one: an exception chain ends in the best."""
    cause = ""
    for message in messages:
        if not _GENERIC.search(message):
            cause = message
        elif cause:
            break
    for pattern in (_IN_VALIDATION, _USAGE):
        if match := pattern.match(f" {cause}" if pattern is _IN_VALIDATION else cause):
            return match[1]
    return cause


def _shortened(text: str) -> str:
    text = text if len(text) <= _HEADLINE else text[: _HEADLINE - 1].rstrip() + "…"
    return text if text.endswith((".", "…", "!", "?")) else f"{text}."
