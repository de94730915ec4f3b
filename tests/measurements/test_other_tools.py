"""Other tools' words: their rules on scheduled times, and what the tools said of such streams.

Each value is a pair: by the rule, and as the tool itself reported it of one request against a
scripted server. The tools read late; they were within 25 ms of the rule.
"""

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fakes.streams import DONE, FIN, HEAD, ROLE, Played, chunk, content, event, play, usage
from hand_written_runs import stream, together, write_run
from logged_replies import REFUSED, Reply, logged

from measurements.other_tools import aiperf, vllm_bench
from measurements.other_tools.raw import Stream, raw_run
from measurements.other_tools.reported import Quantity, ToolReport, as_json, linear, stepped
from measurements.other_tools.tools import TOOLS, report
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.reader import read

READ_LATE_MS = 25
GAPS = {"vllm": vllm_bench.gaps, "aiperf": aiperf.chunk_gaps}
A = content("a")


def thinks(text: str) -> bytes:
    return chunk({"reasoning": text})


class Case(NamedTuple):
    writes: tuple[tuple[float, bytes], ...]
    vllm: dict[str, Any]
    guidellm: dict[str, Any]
    aiperf: dict[str, Any]


NOTHING = (None, None)
CASES = {
    "an early role": Case(
        ((50, ROLE), *((t, A) for t in range(250, 451, 50)), (500, FIN + usage(5) + DONE)),
        vllm={
            "ttft": (50, 55),
            "gaps": ([200, 50, 50, 50, 50, 50], [201, 49, 50, 50, 49, 50]),
            "tpot": (112.5, 112.6),
            "e2e": (500, 505),
        },
        guidellm={"ttft": (250, 254), "itl": (50, 49.6), "tpot": (90, 90.4), "e2e": (500, 517)},
        aiperf={"ttft": (250, 264), "itl": (50, 50.2), "e2e": (450, 465)},
    ),
    "a natural stop": Case(
        (
            (250, ROLE + A),
            *((t, A) for t in range(300, 451, 50)),
            (500, FIN + usage(6) + DONE),
        ),
        vllm={
            "ttft": (250, 261),
            "gaps": ([0, 50, 50, 50, 50, 50], [0, 50, 54, 46, 54, 46]),
            "tpot": (50, 50.1),
        },
        guidellm={"itl": (40, 39.9), "tpot": (75, 75.3), "e2e": (500, 513)},
        aiperf={"itl": (40, 40.1), "e2e": (450, 460)},
    ),
    "several tokens a chunk": Case(
        (
            (100, ROLE + A),
            (150, content("bcde")),
            (200, chunk({"content": "fghi"}, "length") + usage(9) + DONE),
        ),
        vllm={"gaps": ([0, 50, 50], [0, 49, 51]), "tpot": (12.5, 12.5)},
        guidellm={"itl": (12.5, 12.9), "tpot": (200 / 9, 22.9)},
        aiperf={"itl": (12.5, 12.6), "gaps": ([50, 50], [50, 50])},
    ),
    "thinking first": Case(
        (
            (100, ROLE + thinks("a")),
            (150, thinks("b")),
            (900, content("C")),
            (950, FIN + usage(4) + DONE),
        ),
        vllm={
            "ttft": (100, 104),
            "gaps": ([0, 50, 750, 50], [0, 60, 740, 49]),
            "tpot": (850 / 3, 283),
        },
        guidellm={"ttft": (100, 108), "ttft_answer": (900, 908), "itl": (800 / 3, 266)},
        aiperf={"ttft": (100, 121), "ttft_answer": (900, 917), "itl": (800 / 3, 265)},
    ),
    "one token": Case(
        ((100, ROLE + chunk({"content": "a"}, "length") + usage(1) + DONE),),
        vllm={"tpot": (0, 0.0)},
        guidellm={"itl": NOTHING, "tpot": (100, 107)},
        aiperf={"itl": NOTHING},
    ),
    "a late usage": Case(
        ((100, ROLE + A), (200, chunk({"content": "b"}, "length")), (2200, usage(2) + DONE)),
        vllm={"e2e": (200, 207)},
        guidellm={"e2e": (2200, 2207)},
        aiperf={"e2e": (200, 211)},
    ),
}


def said_ms(tool: str, word: str, said: ToolReport, one: Stream) -> Any:
    if word == "gaps":
        return GAPS[tool](one) * 1e3
    mean = getattr(said, word).mean
    return None if mean is None else mean * 1e3


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_stream_is_reported_by_the_tools_rule_and_as_the_tool_did(
    tmp_path: Path, case: Case, tool: str
) -> None:
    run = logged(tmp_path / "run", [Reply(play(*case.writes))])
    said, (one,) = report(run, tool), raw_run(run).streams
    for word, (by_rule, by_tool) in getattr(case, tool).items():
        found = said_ms(tool, word, said, one)
        if by_rule is None:
            assert found is None
            continue
        assert found == pytest.approx(by_rule, abs=1e-6), word
        assert found == pytest.approx(by_tool, abs=READ_LATE_MS), word


def reports(folder: Path, replies: Iterable[Reply]) -> dict[str, ToolReport]:
    run = logged(folder / "run", replies)
    return {tool: report(run, tool) for tool in TOOLS}


def reply(first_ms: float, tokens: int, gap_ms: float = 50) -> Played:
    """Play an even reply that ends by length, with its usage."""
    times = [first_ms + gap_ms * number for number in range(tokens)]
    *others, last = times
    end = chunk({"content": "z"}, "length") + usage(tokens) + DONE
    return play(*((at, A) for at in others), (last, end))


def test_connecting_is_inside_for_vllm_and_aiperf_and_outside_for_guidellm(tmp_path: Path) -> None:
    said = reports(tmp_path, [Reply(reply(100, 3), connect_ms=7)])
    assert {tool: s.ttft.mean for tool, s in said.items()} == {
        "vllm": pytest.approx(0.107),
        "guidellm": pytest.approx(0.100),
        "aiperf": pytest.approx(0.107),
    }
    assert said["vllm"].e2e.mean == said["aiperf"].e2e.mean == pytest.approx(0.207)
    assert said["guidellm"].tpot.mean == pytest.approx(0.2 / 3)


def test_a_long_reply_weighs_by_its_gaps_for_guidellm_and_as_one_for_aiperf(
    tmp_path: Path,
) -> None:
    said = reports(tmp_path, [Reply(reply(100, 2, 90)), Reply(reply(100, 10, 10), 1000)])
    assert said["guidellm"].itl.n == said["aiperf"].itl.n == 2
    assert said["guidellm"].itl.mean == pytest.approx((1 * 0.09 + 9 * 0.01) / 10)
    assert said["guidellm"].tpot.mean == pytest.approx((0.19 + 0.19) / 12)
    assert said["guidellm"].itl.p50 == pytest.approx(0.01)
    assert said["aiperf"].itl.mean == pytest.approx(0.05)
    assert (said["vllm"].itl.n, said["vllm"].itl.p50) == (10, pytest.approx(0.01))


def test_throughput_is_over_the_time_that_each_tool_takes(tmp_path: Path) -> None:
    late = play((100, A), (200, chunk({"content": "b"}, "length")), (700, usage(2) + DONE))
    said = reports(tmp_path, [Reply(reply(100, 3), connect_ms=10), Reply(late, 300)])
    assert {tool: s.output_tokens for tool, s in said.items()} == dict.fromkeys(TOOLS, 5)
    assert said["vllm"].output_tokens_per_s == pytest.approx(5 / 1.010)
    assert said["guidellm"].output_tokens_per_s == pytest.approx(5 / 1.000)
    assert said["aiperf"].output_tokens_per_s == pytest.approx(5 / 0.510)


CUT = play((100, A), (150, A))
CUT_IN_ITS_FRAMING = play(
    (100, b"%x\r\n%s\r\n" % (len(A), A)),
    head=HEAD.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n"),
)
RESET = play((100, A), error=ConnectionResetError(errno.ECONNRESET, "reset"))
ERROR = play((100, A), (150, event({"error": {"message": "engine failed"}}) + DONE))
ERROR_AT_ONCE = play((100, event({"error": {"message": "engine failed"}}) + DONE))
PAGE = play((1, b"busy"), head=b"HTTP/1.1 503 Busy\r\ncontent-type: text/html\r\n\r\n")
SILENT = play((100, ROLE), (150, FIN + usage(0) + DONE))
SILENT_WITH_USAGE = play((100, ROLE), (150, FIN + usage(1) + DONE))


@pytest.mark.parametrize(
    ("played", "successes"),
    [
        (CUT, {"vllm", "guidellm", "aiperf"}),
        (CUT_IN_ITS_FRAMING, set()),
        (RESET, set()),
        (ERROR, {"vllm", "aiperf"}),
        (ERROR_AT_ONCE, set()),
        (PAGE, set()),
        (SILENT, {"vllm"}),
        (SILENT_WITH_USAGE, {"vllm", "guidellm"}),
        (REFUSED, set()),
    ],
    ids=[
        "cut",
        "cut in its framing",
        "reset",
        "error",
        "error at once",
        "503",
        "silent",
        "silent with usage",
        "refused",
    ],
)
def test_each_tool_has_its_own_successes(
    tmp_path: Path, played: Played, successes: set[str]
) -> None:
    said = reports(tmp_path, [Reply(reply(100, 3)), Reply(played, 500)])
    assert {tool for tool, s in said.items() if s.completed == 2} == successes
    assert {s.completed + s.failed for s in said.values()} == {2}


def test_without_a_usage_only_guidellm_counts_and_nobody_guesses(tmp_path: Path) -> None:
    said = reports(tmp_path, [Reply(play((100, A), (150, A), (200, A), (200, FIN + DONE)))])
    assert (said["guidellm"].output_tokens, said["guidellm"].itl.mean) == (3, pytest.approx(0.05))
    for tool in ("vllm", "aiperf"):
        assert said[tool].output_tokens is said[tool].output_tokens_per_s is None
    assert said["vllm"].tpot is said["aiperf"].itl is None
    assert said["vllm"].itl.n == 3


def test_a_usage_beside_choices_is_none_for_vllm(tmp_path: Path) -> None:
    counted = content("b", usage={"completion_tokens": 2})
    said = reports(tmp_path, [Reply(play((100, A), (150, counted), (200, FIN + DONE)))])
    assert said["vllm"].output_tokens is None
    assert said["aiperf"].output_tokens == said["guidellm"].output_tokens == 2


def test_where_nothing_was_measured_vllm_says_0_and_the_others_nothing(tmp_path: Path) -> None:
    said = reports(tmp_path, [Reply(PAGE)])
    assert said["vllm"].ttft == Quantity(n=0, mean=0, p50=0, p90=0, p99=0)
    assert said["guidellm"].ttft == said["aiperf"].ttft == Quantity(n=0)
    assert (said["aiperf"].itl, said["guidellm"].tpot) == (Quantity(n=0), Quantity(n=0))
    assert said["aiperf"].output_tokens_per_s is None


def test_warm_up_and_what_our_stop_cancelled_are_left_out(tmp_path: Path) -> None:
    rows = together(
        stream(0, 0.0, [(0.9, 1)], warmup=1),
        stream(1, 1.0, [(0.1, 1), (0.2, 1)]),
        stream(2, 2.0, [(0.9, 1)], status="cancelled"),
    )
    said = report(read(write_run(tmp_path, **rows)), "aiperf")
    assert (said.completed, said.failed, said.ttft.mean) == (1, 0, pytest.approx(0.1))


def test_an_end_that_was_not_seen_leaves_guidellms_e2e_empty(tmp_path: Path) -> None:
    rows = together(stream(1, 1.0, [(0.1, 1), (0.2, 1)]))
    said = report(read(write_run(tmp_path, **rows)), "guidellm")
    assert said.e2e is None
    assert said.itl.mean == pytest.approx(0.1)


def test_a_run_without_its_events_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "old", **together(stream(1, 0.0, [(0.1, 1)])))
    (folder / "events.csv").unlink()
    with pytest.raises(RunFolderError, match=r"has no events\.csv"):
        report(read(folder), "vllm")


def test_percentiles_lie_between_values_for_two_tools_and_on_one_for_guidellm() -> None:
    values = [0.1, 0.2, 0.3, 0.4]
    assert linear(values).p50 == pytest.approx(0.25)
    assert stepped(values, np.ones(4)).p50 == pytest.approx(0.2)
    assert stepped(values, [1, 1, 1, 9]).p50 == pytest.approx(0.4)
    assert stepped(values, [0, 0, 0, 5]) == Quantity(n=1, mean=0.4, p50=0.4, p90=0.4, p99=0.4)


def test_a_report_in_json_has_its_units(tmp_path: Path) -> None:
    document = as_json(reports(tmp_path, [Reply(reply(100, 3))])["aiperf"])
    assert document["tool"] == "aiperf 0.13.0"
    assert document["ttft_s"]["mean"] == pytest.approx(0.1)
    assert document["chunk_gap_s"]["n"] == 2
    assert document["tpot_s"] is None
