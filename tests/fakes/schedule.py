"""What the scheduled server says and when: a script → bytes with their times.

A prompt may carry a script of its own, as a JSON object anywhere in its text:

    please {"script": {"ttft_ms": 20, "chunks": 5, "end": "reset"}}

Fields (each has a default, which the server's command line may set for all requests):

    role_ms            when head and role chunk leave; null: together with the first token
    ttft_ms, gap_ms    when the first chunk with text leaves, and each later one after the last
    chunks             how many chunks with text (default: max_tokens / tokens_per_chunk)
    tokens_per_chunk   words in one chunk
    kind               content, reasoning, reasoning_content (chat only)
    end                done: finish_reason, usage where asked for, [DONE]
                       cut: the connection closes after the last chunk
                       reset: the same with a TCP reset
                       stall: nothing more comes
                       error: an error object, then [DONE]
                       drop: closed without any answer
    status, message    another HTTP status, with an error body, after ttft_ms
    page               a body that is no event stream, sent as text/html
    writes             [[ms, "bytes as text"], …]: the body of the event stream, as it is
    close              true: "Connection: close"
    template_tokens    a prompt has these and one a word, /tokenize says so too; null: always 8, and
                       no /tokenize. Token ids are counted as they are
    queue_ms, prefill_ms   what the engine says of a reply, beside its usage
"""

import json
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Script:
    role_ms: float | None = 0.0
    ttft_ms: float = 50.0
    gap_ms: float = 10.0
    chunks: int | None = None
    tokens_per_chunk: int = 1
    kind: str = "content"
    end: str = "done"
    status: int = 200
    message: str = "scripted failure"
    page: str | None = None
    writes: list[tuple[float, str]] | None = None
    close: bool = False
    template_tokens: int | None = None
    queue_ms: float | None = None
    prefill_ms: float | None = None

    def prompt_tokens(self, prompt: str | list[int]) -> int:
        """Count a prompt's tokens."""
        if isinstance(prompt, list):
            return len(prompt)
        if self.template_tokens is None:
            return 8
        return self.template_tokens + len(prompt.split())

    def with_prompt(self, prompt: str) -> "Script":
        """Return the script with what a prompt says of it."""
        start = prompt.find('{"script"')
        if start < 0:
            return self
        found = json.JSONDecoder().raw_decode(prompt[start:])[0]["script"]
        known = {field.name for field in fields(self)}
        return replace(self, **{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True)
class Ask:
    """A request, as far as an answer depends on it."""

    number: int
    chat: bool
    stream: bool
    model: str
    prompt: str
    prompt_tokens: int
    max_tokens: int
    usage: bool
    usage_per_chunk: bool

    @property
    def response_id(self) -> str:
        return f"{'chatcmpl' if self.chat else 'cmpl'}-{self.number}"


@dataclass(frozen=True)
class Write:
    """Bytes that leave `at_ms` after the request was read; `tokens` of generated text in them."""

    at_ms: float
    data: bytes
    tokens: int = 0


def prompt_of(value: dict[str, Any]) -> str | list[int]:
    """Return the prompt of a body, of either API."""
    return value["messages"][-1]["content"] if "messages" in value else value["prompt"]


def read_ask(number: int, path: str, body: bytes, script: Script) -> Ask:
    """Read a request's body."""
    value = json.loads(body)
    chat = path.endswith("/chat/completions")
    prompt = prompt_of(value)
    options = value.get("stream_options") or {}
    return Ask(
        number=number,
        chat=chat,
        stream=bool(value.get("stream")),
        model=value["model"],
        prompt=str(prompt),
        prompt_tokens=script.prompt_tokens(prompt),
        max_tokens=int(value.get("max_tokens") or 16),
        usage=bool(options.get("include_usage")),
        usage_per_chunk=bool(options.get("continuous_usage_stats")),
    )


def head(status: int, content_type: str, length: int | None, *, close: bool = False) -> bytes:
    """Return a response's head; no length: chunked."""
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    last = "Connection: close\r\n" if close else ""
    return (
        f"HTTP/1.1 {status} Scheduled\r\nContent-Type: {content_type}\r\n{framing}\r\n{last}\r\n"
    ).encode()


def whole(status: int, content_type: str, body: bytes, *, close: bool = False) -> bytes:
    """Return a whole response."""
    return head(status, content_type, len(body), close=close) + body


def answer(ask: Ask, script: Script) -> list[Write]:
    """Return what is written for a request; the last write ends the reply."""
    if script.status != 200:
        body = json.dumps({"error": {"message": script.message, "code": script.status}}).encode()
        reply = whole(script.status, "application/json", body, close=script.close)
        return [Write(script.ttft_ms, reply)]
    if script.page is not None:
        return [Write(script.ttft_ms, whole(200, "text/html", script.page.encode()))]
    if not ask.stream:
        return [Write(script.ttft_ms, whole(200, "application/json", _completion(ask, script)))]
    return _stream(ask, script)


def _stream(ask: Ask, script: Script) -> list[Write]:
    opening = head(200, "text/event-stream; charset=utf-8", None, close=script.close)
    if script.writes is not None:
        writes = [Write(at_ms, _framed(text.encode())) for at_ms, text in script.writes]
        first = writes[0].at_ms if writes else 0.0
        return [Write(min(first, 0.0), opening), *writes, *_ending(ask, script, writes)]
    role = opening + (
        _framed(_event(ask, {"role": "assistant", "content": ""}, 0)) if ask.chat else b""
    )
    at_role = script.ttft_ms if script.role_ms is None else script.role_ms
    writes = [Write(at_role, role), *_texts(ask, script)]
    return [*writes, *_ending(ask, script, writes)]


def _texts(ask: Ask, script: Script) -> list[Write]:
    count = script.chunks
    if count is None:
        count = -(-ask.max_tokens // script.tokens_per_chunk)
    return [
        Write(
            script.ttft_ms + script.gap_ms * number,
            _framed(_text_event(ask, script, number)),
            script.tokens_per_chunk,
        )
        for number in range(count)
    ]


def _text_event(ask: Ask, script: Script, number: int) -> bytes:
    first = number * script.tokens_per_chunk
    text = "".join(f" w{word}" for word in range(first, first + script.tokens_per_chunk))
    return _event(ask, {script.kind: text}, first + script.tokens_per_chunk)


def _event(ask: Ask, delta: dict[str, str], tokens: int, finish: str | None = None) -> bytes:
    """Return one event; `tokens` generated up to it."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    if ask.chat:
        choice["delta"] = delta
    else:
        choice["text"] = delta.get("content", "")
    value: dict[str, Any] = {"id": ask.response_id, "model": ask.model, "choices": [choice]}
    if ask.usage_per_chunk:
        value["usage"] = _usage(ask, tokens)
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _usage(ask: Ask, tokens: int) -> dict[str, int]:
    prompt = ask.prompt_tokens
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def _ending(ask: Ask, script: Script, writes: list[Write]) -> list[Write]:
    at_ms = writes[-1].at_ms if writes else script.ttft_ms
    if script.end == "error":
        error = b'data: {"error": {"message": "%s", "code": 500}}\n\n' % script.message.encode()
        return [Write(at_ms, _framed(error + b"data: [DONE]\n\n") + b"0\r\n\r\n")]
    if script.end != "done":
        return []
    if script.writes is not None:
        return [Write(at_ms, b"0\r\n\r\n")]
    total = sum(write.tokens for write in writes)
    tail = _event(ask, {}, total, finish="length")
    if ask.usage:
        usage = {"id": ask.response_id, "choices": [], "usage": _usage(ask, total)}
        if script.queue_ms is not None:
            usage["metrics"] = {
                "queue_time_ms": script.queue_ms,
                "time_to_first_token_ms": script.prefill_ms,
            }
        tail += b"data: " + json.dumps(usage).encode() + b"\n\n"
    return [Write(at_ms, _framed(tail + b"data: [DONE]\n\n") + b"0\r\n\r\n")]


def _completion(ask: Ask, script: Script) -> bytes:
    text = " ".join(f"w{word}" for word in range(ask.max_tokens))
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "length", "message": message, "text": text}
    usage = _usage(ask, ask.max_tokens)
    return json.dumps(
        {"id": ask.response_id, "model": ask.model, "choices": [choice], "usage": usage}
    ).encode()


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
