"""A server of our own that speaks the API by a known schedule and logs when it sent what.

    python -m fakes.scheduled_server --port 0 --log sends.jsonl --script '{"ttft_ms": 50}'

prints its port, and then answers /health, /version, /metrics, /v1/models, /v1/chat/completions,
/v1/completions and perhaps /tokenize. What it answers is a script (`fakes/schedule.py`). Its log
has a line a reply, with times of CLOCK_MONOTONIC in ns: `response_id`, `prompt`, `received_ns` (by
the kernel), `sent_ns` (one a chunk with text, taken just before its send), `tokens` (of each),
`ended`, `ended_ns`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any, Self, TextIO

from fakes import schedule
from fakes.schedule import Ask, Script, Write

SO_TIMESTAMPNS = 35  # Linux
TESTS = Path(__file__).resolve().parent.parent


@dataclass
class Entry:
    """A line of the log."""

    response_id: str
    prompt: str
    received_ns: int
    sent_ns: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    ended: str = ""
    ended_ns: int = 0


@dataclass
class Server:
    """What all connections share."""

    loop: asyncio.AbstractEventLoop
    model: str
    script: Script
    log: TextIO
    asked: int = 0
    running: int = 0
    ttft_s: list[float] = field(default_factory=list)  # as /metrics tells them
    itl_s: list[float] = field(default_factory=list)

    def write_entry(self, entry: Entry) -> None:
        self.log.write(json.dumps(asdict(entry)) + "\n")
        self.log.flush()

    def page(self, path: str) -> bytes:
        """Answer a GET."""
        if path == "/metrics":
            return schedule.whole(200, "text/plain", self._metrics().encode())
        known: dict[str, Any] = {
            "/health": {},
            "/version": {"version": "scheduled"},
            "/v1/models": {"object": "list", "data": [{"id": self.model, "object": "model"}]},
        }
        if path not in known:
            return schedule.whole(404, "application/json", b'{"detail": "Not Found"}')
        return schedule.whole(200, "application/json", json.dumps(known[path]).encode())

    def tokenized(self, body: bytes) -> bytes:
        """Answer /tokenize, where the script knows what a token is."""
        if self.script.template_tokens is None:
            return schedule.whole(404, "application/json", b'{"detail": "Not Found"}')
        count = self.script.prompt_tokens(schedule.prompt_of(json.loads(body)))
        return schedule.whole(200, "application/json", json.dumps({"count": count}).encode())

    def _metrics(self) -> str:
        return (
            "# TYPE vllm:num_requests_running gauge\n"
            f'vllm:num_requests_running{{engine="0",model_name="{self.model}"}} {self.running}.0\n'
            f'vllm:num_requests_waiting{{engine="0",model_name="{self.model}"}} 0.0\n'
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="{self.model}"}} 0.25\n'
            f"vllm:time_to_first_token_seconds_sum {sum(self.ttft_s)!r}\n"
            f"vllm:time_to_first_token_seconds_count {len(self.ttft_s)}.0\n"
            f"vllm:inter_token_latency_seconds_sum {sum(self.itl_s)!r}\n"
            f"vllm:inter_token_latency_seconds_count {len(self.itl_s)}.0\n"
        )


class Connection:
    """One client's connection. Raw sends: the logged time is that of the system call."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self._server = server
        self._socket = sock
        self._received = b""
        self._entry: Entry | None = None
        self._ask: Ask | None = None
        self._script = server.script
        self._writes: list[Write] = []
        self._timer: asyncio.Handle | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._received_ns = 0
        server.loop.add_reader(sock, self._on_readable)

    def _on_readable(self) -> None:
        try:
            data, ancillary, _, _ = self._socket.recvmsg(1 << 20, 64)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close("client closed")
            return
        self._received += data
        self._received_ns = _receive_time_ns(ancillary)
        self._next_request()

    def _next_request(self) -> None:
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found or self._entry is not None:
            return
        length = next(
            (
                int(line[15:])
                for line in head.lower().split(b"\r\n")
                if line[:15] == b"content-length:"
            ),
            0,
        )
        if len(rest) < length:
            return
        self._received = rest[length:]
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        if method == "GET":
            self._send(self._server.page(path))
            self._next_request()
        elif path == "/tokenize":
            self._send(self._server.tokenized(rest[:length]))
            self._next_request()
        else:
            self._begin(path, rest[:length])

    def _begin(self, path: str, body: bytes) -> None:
        server = self._server
        ask = schedule.read_ask(server.asked, path, body, server.script)
        server.asked += 1
        server.running += 1
        self._script = server.script.with_prompt(ask.prompt)
        self._entry = Entry(ask.response_id, ask.prompt, self._received_ns)
        if self._script.end == "drop":
            self._close("drop")
            return
        self._writes = schedule.answer(ask, self._script)[::-1]
        self._wait()

    def _wait(self) -> None:
        if self._entry is None:
            return
        if not self._writes:
            self._ended()
            return
        due_ns = self._entry.received_ns + self._writes[-1].at_ms * 1e6
        delay_s = max(0.0, (due_ns - monotonic_ns()) / 1e9)
        self._timer = self._server.loop.call_later(delay_s, self._write)

    def _write(self) -> None:
        if self._entry is None:
            return
        write = self._writes.pop()
        if write.tokens:
            self._note_send(self._entry, write.tokens)
        self._send(write.data)
        self._wait()

    def _note_send(self, entry: Entry, tokens: int) -> None:
        since_ns = entry.sent_ns[-1] if entry.sent_ns else entry.received_ns
        known = self._server.itl_s if entry.sent_ns else self._server.ttft_s
        entry.tokens.append(tokens)
        entry.sent_ns.append(monotonic_ns())
        known.append((entry.sent_ns[-1] - since_ns) / 1e9)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self._close("client closed")

    def _ended(self) -> None:
        """Do what the script has for the end of a reply."""
        if self._script.end == "stall":
            return
        if self._script.end == "reset":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._script.end in {"reset", "cut"} or self._script.close:
            self._close(self._script.end)
            return
        self._log("done")
        self._next_request()

    def _log(self, ended: str) -> None:
        if self._entry is not None:
            entry, self._entry = self._entry, None
            entry.ended, entry.ended_ns = ended, monotonic_ns()
            self._server.running -= 1
            self._server.write_entry(entry)

    def _close(self, ended: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._log(ended)
        if self._socket.fileno() >= 0:
            self._server.loop.remove_reader(self._socket)
            self._socket.close()


def _receive_time_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return the kernel's receive time on the monotonic clock, or now."""
    now_ns, wall_ns = monotonic_ns(), time_ns()
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack_from("@ll", data)
            return min(now_ns, now_ns - wall_ns + seconds * 1_000_000_000 + nanoseconds)
    return now_ns


def _accept(server: Server, listener: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError, ConnectionError):
        while True:
            Connection(server, listener.accept()[0])


async def _serve(arguments: argparse.Namespace, log: TextIO) -> None:
    loop = asyncio.get_running_loop()
    script = Script(**json.loads(arguments.script))
    server = Server(loop, arguments.model, script, log)
    listener = socket.create_server(("127.0.0.1", arguments.port), backlog=1024)
    listener.setblocking(False)
    loop.add_reader(listener, _accept, server, listener)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.create_future()


def _runner() -> Callable[[Any], None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


class ScheduledServer:
    """The server as a process: `with ScheduledServer(folder, ttft_ms=20) as server: …`."""

    def __init__(
        self, folder: Path, *, model: str = "tiny-lm", port: int = 0, **script: Any
    ) -> None:
        self.log_path = folder / f"scheduled-{monotonic_ns()}.jsonl"
        self.model = model
        self._command = [
            sys.executable,
            *("-m", "fakes.scheduled_server", "--port", str(port), "--model", model),
            *("--log", str(self.log_path), "--script", json.dumps(script)),
        ]
        self._process: subprocess.Popen[str] | None = None
        self.port = port

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=TESTS, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The base URL, in its normal form."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        """End the server; its port refuses from then on."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None

    def send_log(self) -> list[dict[str, Any]]:
        """Return the log's lines: a dict for each reply that has ended."""
        if not self.log_path.exists():
            return []
        lines = self.log_path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> None:
    parser = argparse.ArgumentParser(description="answer the API by a known schedule")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", default="tiny-lm")
    parser.add_argument("--log", type=Path, default=os.devnull)
    parser.add_argument("--script", default="{}", help="defaults of all requests, as JSON")
    arguments = parser.parse_args()
    with arguments.log.open("a", encoding="utf-8") as log, contextlib.suppress(KeyboardInterrupt):
        _runner()(_serve(arguments, log))


if __name__ == "__main__":
    main()
