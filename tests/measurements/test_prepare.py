"""Requests as bytes: the same ones that the openai client sends."""

import asyncio
import socket
from typing import Any

import openai
import pytest

from measurements import prepare
from measurements.http1 import RequestError
from measurements.plan import Load, Plan, Target
from measurements.prepare import Prepared, Stock
from measurements.prompts import Prompt

PROMPTS = [
    Prompt("a", "Say hello."),
    Prompt("b", 'Quotes ", back\\slashes, \n lines, ü, 🙂, \u2028 and <tags> & more'),
    Prompt("c", "", ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "é"})),
]


def plan(base_url: str, **load: Any) -> Plan:
    return Plan(target=Target(base_url=base_url, served_model="tiny-lm"), load=Load(**load))


async def sent_by_client(given: Plan, prompt: Prompt, listener: socket.socket, key: str) -> bytes:
    """Return the raw bytes with which the openai client asks."""
    loop = asyncio.get_running_loop()
    async with openai.AsyncOpenAI(
        base_url=given.target.base_url, api_key=key, max_retries=0
    ) as client:
        asked = loop.create_task(_ask(client, given, prompt))
        connection, _ = await loop.sock_accept(listener)
        request = await _whole_request(connection)
        await loop.sock_sendall(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await asked
        connection.close()
    return request


async def _ask(client: openai.AsyncOpenAI, given: Plan, prompt: Prompt) -> None:
    options = prepare.call_options(given)
    if given.target.api == "chat":
        stream = await client.chat.completions.create(messages=prompt.messages(), **options)
    else:
        stream = await client.completions.create(prompt=prompt.text(), **options)
    await stream.close()


async def _whole_request(connection: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while True:
        data += await loop.sock_recv(connection, 65_536)
        head, found, body = data.partition(b"\r\n\r\n")
        if found and len(body) == int(head.lower().rpartition(b"content-length: ")[2].split()[0]):
            return data


PLANS = [
    plan,
    lambda url: plan(url, ignore_eos=True, temperature=0.0, max_tokens=7),
    lambda url: Plan(
        target=Target(base_url=url, served_model='a "model"', usage="final"), load=Load()
    ),
    lambda url: Plan(
        target=Target(base_url=url, served_model="m", api="completions", usage="none"), load=Load()
    ),
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.prompt_id)
@pytest.mark.parametrize("make_plan", PLANS)
def test_the_bytes_are_those_of_the_openai_client(make_plan: Any, prompt: Prompt) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            given = make_plan(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
            theirs = await sent_by_client(given, prompt, listener, "a-key")
        template = await prepare.make_template(given, "a-key")
        assert template.fill(prompt) == theirs

    asyncio.run(test())


def test_without_a_key_the_usual_placeholder_is_sent() -> None:
    template = asyncio.run(prepare.make_template(plan("http://127.0.0.1:8000/v1"), None))
    assert b"authorization: Bearer EMPTY\r\n" in template.fill(PROMPTS[0])


def test_a_key_that_would_break_the_request_is_refused() -> None:
    with pytest.raises(RequestError, match="'authorization'"):
        asyncio.run(prepare.make_template(plan("http://127.0.0.1:8000/v1"), "key\n"))


def test_a_stock_hands_out_requests_in_order_whether_built_ahead_or_not() -> None:
    numbers = iter(range(9))
    stock = Stock(lambda: Prepared(str(next(numbers)), b""))
    assert stock.top_up(2)
    assert not stock.top_up(2)
    assert not stock.top_up(2)
    assert [stock.take().prompt_id for _ in range(4)] == ["0", "1", "2", "3"]
