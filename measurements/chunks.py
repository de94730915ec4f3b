"""The data of one event → a chunk: only the fields that matter, by msgspec. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Kind = Literal["content", "reasoning", "tool"]
Piece = tuple[Kind, str]


class NotAChunkError(ValueError):
    """Data that are no chunk of a chat or completions stream."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the server counts them; None where it does not say."""

    prompt: int | None
    completion: int | None
    cached: int | None


class Chunk(msgspec.Struct, frozen=True):
    """One chunk of a streamed reply."""

    pieces: tuple[Piece, ...] = ()  # generated text; never an empty one
    choices: bool = False  # whether it has any, with text or without
    role: bool = False  # whether it says who speaks, and nothing else
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None  # the message of an error object inside the stream
    queue_ns: int | None = None  # the engine's own share of the TTFT: waiting …
    prefill_ns: int | None = None  # … and from being scheduled to the first token
    response_id: str | None = None


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


class _Delta(msgspec.Struct):
    role: Any = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Metrics(msgspec.Struct):
    queue_time_ms: float | None = None
    time_to_first_token_ms: float | None = None


class _Body(msgspec.Struct):
    id: str | None = None
    object: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    metrics: _Metrics | None = None
    error: Any = None
    message: Any = None


_NO_METRICS = _Metrics()
LONGEST_MESSAGE = 500  # characters: what vLLM says of a prompt that is too long has 300
_LONGEST_MS = 1e9  # of a duration that a server gives: eleven days
_decoder = msgspec.json.Decoder(_Body)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: a nest of lists


def decode(data: bytes) -> Chunk:
    """Read one event's data; NotAChunkError with a sentence where they are something else."""
    try:
        body = _decoder.decode(data)
        error_message = _error(body)
    except _UNREADABLE as error:
        raise NotAChunkError(f"an event is no chunk ({error}): {excerpt(data)}") from error
    choices = body.choices or ()
    pieces, finish_reason = _generated(choices)
    metrics = body.metrics or _NO_METRICS
    return Chunk(
        pieces=pieces,
        choices=bool(choices),
        role=not pieces and _says_role(choices),
        finish_reason=finish_reason,
        usage=_usage(body.usage) if body.usage is not None else None,
        error=error_message,
        queue_ns=_ns(metrics.queue_time_ms),
        prefill_ns=_ns(metrics.time_to_first_token_ms),
        response_id=body.id,
    )


def error_message(data: bytes) -> str:
    """Return what an error body says, JSON or not, as one short line."""
    try:
        return _message(msgspec.json.decode(data)) or excerpt(data)
    except _UNREADABLE:
        return excerpt(data)


def excerpt(data: bytes, limit: int = 200) -> str:
    """Return the beginning of `data` as one line of text."""
    text = " ".join(data[: 4 * limit].decode("utf-8", "replace").split())
    return text if len(text) <= limit else text[:limit] + "…"


def _generated(choices: list[_Choice] | tuple[()]) -> tuple[tuple[Piece, ...], str | None]:
    pieces: list[Piece] = []
    finish_reason = None
    for choice in choices:
        finish_reason = choice.finish_reason or finish_reason
        if choice.text:
            pieces.append(("content", choice.text))
        if choice.delta is not None:
            _add_delta(pieces, choice.delta)
    return tuple(pieces), finish_reason


def _says_role(choices: Sequence[_Choice]) -> bool:
    return any(choice.delta is not None and choice.delta.role for choice in choices)


def _add_delta(pieces: list[Piece], delta: _Delta) -> None:
    reasoning = delta.reasoning or delta.reasoning_content
    if reasoning:
        pieces.append(("reasoning", reasoning))
    if delta.content:
        pieces.append(("content", delta.content))
    for call in delta.tool_calls or ():
        if call.function is not None:
            text = (call.function.name or "") + (call.function.arguments or "")
            if text:
                pieces.append(("tool", text))


def _usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    cached = None if details is None else details.cached_tokens
    return Usage(usage.prompt_tokens, usage.completion_tokens, cached)


def _error(body: _Body) -> str | None:
    """Return the message of an error in any of the forms that servers use, or None."""
    if body.error:
        return _message(body.error) or "an error without a message"
    if body.object == "error":
        return _message(body.message) or "an error without a message"
    return None


def _message(value: Any) -> str:
    if isinstance(value, str):
        return excerpt(value.encode("utf-8", "replace"), LONGEST_MESSAGE)
    if not isinstance(value, dict):
        return ""
    for key in ("message", "error", "detail", "msg", "code"):
        inner = value.get(key)
        if inner:
            return _message(inner if isinstance(inner, str | dict) else str(inner))
    return ""


def _ns(milliseconds: float | None) -> int | None:
    """Return a duration that a server gives; None where it gives none, or an absurd one."""
    if milliseconds is None or not 0 <= milliseconds <= _LONGEST_MS:
        return None
    return round(milliseconds * 1_000_000)
