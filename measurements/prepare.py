"""Requests as bytes, made before their send time: the same bytes that the openai client sends.

The client builds one request; for each prompt its messages are put in place of the first ones.
"""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx2
import openai

from measurements.http1 import request_head
from measurements.plan import Plan
from measurements.prompts import Prompt

_PLACEHOLDER = "the place of the prompt"
NO_KEY = "EMPTY"  # what openai clients commonly send to a server that wants no key


class Prepared(NamedTuple):
    """One request, ready to be sent."""

    prompt_id: str
    payload: bytes


@dataclass(frozen=True)
class Template:
    """A request of the openai client, cut where the prompt stands."""

    head: bytes  # request line and headers up to the value of Content-Length
    body_before: bytes
    body_after: bytes
    chat: bool

    def fill(self, prompt: Prompt) -> bytes:
        """Return the request for `prompt`, head and body."""
        value = prompt.messages() if self.chat else prompt.text()
        body = self.body_before + _json(value) + self.body_after
        return b"%s%d\r\n\r\n%s" % (self.head, len(body), body)


class _Capture(httpx2.AsyncBaseTransport):
    """A transport that sends nothing and keeps the request."""

    def __init__(self) -> None:
        self.request: httpx2.Request | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.request = request
        return httpx2.Response(200, content=b"", headers={"content-type": "text/event-stream"})


async def make_template(plan: Plan, api_key: str | None) -> Template:
    """Let the openai client build one request for `plan`, and cut it where the prompt stands."""
    request = await _built_by_client(plan, api_key or NO_KEY)
    chat = plan.target.api == "chat"
    prompt = Prompt("", _PLACEHOLDER)
    before, after = request.content.split(_json(prompt.messages() if chat else prompt.text()))
    return Template(_head(request), before, after, chat)


async def _built_by_client(plan: Plan, api_key: str) -> httpx2.Request:
    capture = _Capture()
    async with (
        httpx2.AsyncClient(transport=capture, trust_env=False) as http_client,
        openai.AsyncOpenAI(
            base_url=plan.target.base_url, api_key=api_key, max_retries=0, http_client=http_client
        ) as client,
    ):
        await _ask(client, plan, Prompt("", _PLACEHOLDER))
    if capture.request is None:
        raise RuntimeError("the openai client built no request")
    return capture.request


async def _ask(client: openai.AsyncOpenAI, plan: Plan, prompt: Prompt) -> None:
    """Make the call whose bytes are wanted."""
    options = call_options(plan)
    if plan.target.api == "chat":
        await client.chat.completions.create(messages=prompt.messages(), **options)
    else:
        await client.completions.create(prompt=prompt.text(), **options)


def call_options(plan: Plan) -> dict[str, Any]:
    """Return the arguments of the openai client's `create` for `plan`, all but the prompt."""
    options: dict[str, Any] = {
        "model": plan.target.served_model,
        "stream": True,
        "max_tokens": plan.load.max_tokens,
        "temperature": plan.load.temperature,
    }
    if plan.target.usage != "none":
        options["stream_options"] = {"include_usage": True}
    if plan.target.usage == "per_chunk":
        options["stream_options"]["continuous_usage_stats"] = True
    if plan.load.ignore_eos:
        options["extra_body"] = {"ignore_eos": True}
    return options


def _head(request: httpx2.Request) -> bytes:
    headers = [
        (name, value) for name, value in request.headers.raw if name.lower() != b"content-length"
    ]
    # httpx2 writes the length last; a test compares every byte.
    return request_head(request.method, request.url.raw_path, headers) + b"Content-Length: "


def _json(value: Any) -> bytes:
    """Encode as httpx2 does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


class Stock:
    """Requests built ahead, so that none is built while a stream waits for it."""

    def __init__(self, build: Callable[[], Prepared]) -> None:
        self._build = build
        self._ready: deque[Prepared] = deque()

    def take(self) -> Prepared:
        """Return the next request; they come in the order in which they are built."""
        if not self._ready:
            self.top_up(1)
        return self._ready.popleft()

    def top_up(self, depth: int) -> bool:
        """Build one request if fewer than `depth` are ready; return whether more are wanted."""
        if len(self._ready) < depth:
            self._ready.append(self._build())
        return len(self._ready) < depth
