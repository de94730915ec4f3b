"""The engine's own figures, from its /metrics page (Prometheus text), once a second."""

import asyncio
import re
from collections.abc import Callable
from time import monotonic_ns

from measurements.connection import Connection, Read
from measurements.http1 import HttpError, Response
from measurements.pool import Pool
from measurements.pump import Pump

# The names that vLLM gives them, the older ones second; in the order of server_metrics.csv.
NAMES: tuple[tuple[str, ...], ...] = (
    ("vllm:num_requests_running",),
    ("vllm:num_requests_waiting",),
    ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    ("vllm:prompt_tokens_total",),
    ("vllm:generation_tokens_total",),
    ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    ("vllm:time_to_first_token_seconds_sum",),
    ("vllm:time_to_first_token_seconds_count",),
    ("vllm:inter_token_latency_seconds_sum", "vllm:time_per_output_token_seconds_sum"),
    ("vllm:inter_token_latency_seconds_count", "vllm:time_per_output_token_seconds_count"),
)
ANSWER_LIMIT_NS = 5_000_000_000
PAGE_LIMIT = 16 * 1024 * 1024  # bytes; vLLM's is about 100 kB
_MEANS = frozenset({"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"})  # shares, not counts
_WANTED = "|".join(re.escape(name) for names in NAMES for name in names)
_SAMPLE = re.compile(rf"^({_WANTED})(?:\{{[^\n]*\}})?[ \t]+([-+0-9.eE]+)".encode(), re.MULTILINE)

Row = tuple[float | None, ...]


def parse(page: bytes) -> Row:
    """Return the columns of server_metrics.csv after `at_s`; several engines of a page are joined.

    Counts are added, shares averaged; None where the page has no such figure.
    """
    found: dict[str, list[float]] = {}
    for match in _SAMPLE.finditer(page):
        try:
            found.setdefault(match[1].decode(), []).append(float(match[2]))
        except ValueError:
            continue
    return tuple(_figure(found, names) for names in NAMES)


def _figure(found: dict[str, list[float]], names: tuple[str, ...]) -> float | None:
    for name in names:
        values = found.get(name)
        if values:
            return sum(values) / (len(values) if name in _MEANS else 1)
    return None


class Scraper:
    """Ask for the page without ever waiting for it; stop asking a server that has none."""

    def __init__(self, pool: Pool, pump: Pump, on_row: Callable[[int, Row], None]) -> None:
        self._pool = pool
        self._pump = pump
        self._on_row = on_row
        self._request = (
            f"GET /metrics HTTP/1.1\r\nHost: {pool.endpoint.name}\r\nAccept: text/plain\r\n\r\n"
        ).encode()
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._response = Response()
        self._page = bytearray()
        self._asked_ns = 0
        self._awaited: asyncio.Future[None] | None = None
        self.useless = False

    def ask(self) -> None:
        """Ask once, unless the last answer is still to come."""
        if self.useless or self._opening is not None:
            return
        if self._connection is not None:
            if monotonic_ns() - self._asked_ns > ANSWER_LIMIT_NS:
                self._drop()
            return
        connection = self._pool.take()
        if connection is not None:
            self._send(connection)
        else:
            self._opening = asyncio.get_running_loop().create_task(self._open())

    async def answer(self, limit_s: float) -> None:
        """Ask anew and wait for the row that comes of it, for so long at most."""
        if self.useless:
            return
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        self._drop()  # an answer that is under way tells of an earlier moment
        self._awaited = asyncio.get_running_loop().create_future()
        self.ask()
        await asyncio.wait((self._awaited,), timeout=limit_s)
        self._awaited = None

    def close(self) -> None:
        """Ask no more."""
        self.useless = True
        if self._opening is not None:
            self._opening.cancel()
        self._drop()

    async def _open(self) -> None:
        try:
            connection = await self._pool.open()
        except OSError:
            self._note_over()
            return  # the load says that the server is away
        finally:
            self._opening = None
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        self._response = Response()
        self._page.clear()
        self._asked_ns = monotonic_ns()
        self._connection = connection
        connection.receiver = self._received
        connection.send(self._request)

    def _received(self, read: Read) -> None:
        try:
            if read.data:
                self._page += self._response.feed(read.data)
            else:
                self._response.feed_eof()
        except HttpError:
            self.useless = True
        self.useless = self.useless or len(self._page) > PAGE_LIMIT
        if self._response.complete:
            self._answered(read.at_ns)
        elif not read.data or self.useless:
            self._drop()
            self._note_over()

    def _answered(self, at_ns: int) -> None:
        if self._response.is_success:
            self._pump.post(self._parsed, at_ns, bytes(self._page))
        else:
            self.useless = True
        self._drop()
        self._pump.post(self._note_over)

    def _parsed(self, at_ns: int, page: bytes) -> None:
        row = parse(page)
        if any(value is not None for value in row):
            self._on_row(at_ns, row)
        else:
            self.useless = True

    def _note_over(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)
        self._awaited = None

    def _drop(self) -> None:
        if self._connection is not None:
            # Outside of a run the pool stays as it is: a first request opens its own, and says so.
            reusable = self._response.reusable and self._awaited is None
            self._pool.give_back(self._connection, reusable=reusable)
            self._connection = None
