"""What is measured: which loads, by which client, and what one run of it brings."""

from dataclasses import dataclass

from benchmarks.arrivals.truth import Errors, Offered, Schedule

TTFT_NS = 50_000_000
GAP_NS = 10_000_000
FAST_GAP_NS = 1_000_000
TOKENS = 128  # a reply
ROUNDS = 6  # replies of each stream: a run of about eight seconds
FAST_ROUNDS = 30
LATENESS_LIMIT_S = 0.0002  # of the server, p99: beyond it, a run says nothing about a client


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the table."""

    client: str  # "lab" or "vllm"
    concurrency: int
    gap_ns: int = GAP_NS
    rounds: int = ROUNDS
    window: bool = False  # the lab's window is open, with all its charts

    @property
    def schedule(self) -> Schedule:
        """Return the server's schedule."""
        return Schedule(TTFT_NS, self.gap_ns)

    @property
    def requests(self) -> int:
        """Return how many requests are sent."""
        return self.rounds * self.concurrency

    @property
    def fast(self) -> bool:
        """Whether this is the case that asks for the most tokens/s."""
        return self.gap_ns == FAST_GAP_NS

    @property
    def name(self) -> str:
        """Return what the table calls it."""
        who = "vllm bench serve" if self.client == "vllm" else "Latency Lab"
        window = ", window open" if self.window else ""
        return f"{who}{window}"


LAB_CASES = (
    Case(client="lab", concurrency=1, window=True),
    Case(client="lab", concurrency=8, window=True),
    Case(client="lab", concurrency=64, window=True),
    Case(client="lab", concurrency=256, window=True),
    Case(client="lab", concurrency=256),
    Case(client="lab", concurrency=64, gap_ns=FAST_GAP_NS, rounds=FAST_ROUNDS),
)
VLLM_CASES = (
    Case(client="vllm", concurrency=8),
    Case(client="vllm", concurrency=64),
    Case(client="vllm", concurrency=256),
    Case(client="vllm", concurrency=64, gap_ns=FAST_GAP_NS, rounds=FAST_ROUNDS),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run of one case."""

    errors: Errors
    offered: Offered
    received_per_s: float  # tokens/s in the client's own log
    cpu_per_1000_tokens_s: float
    burst_share: float = float("nan")  # the lab's own word: chunks that shared a read

    @property
    def counts(self) -> bool:
        """Whether the server kept its schedule."""
        return self.offered.lateness_p99_s <= LATENESS_LIMIT_S
