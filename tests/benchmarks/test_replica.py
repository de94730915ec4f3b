"""What the comparison on one replica prints."""

from benchmarks.replica import Means, Told, table

NAN = float("nan")


def test_a_client_stands_beside_the_engines_own_means() -> None:
    told = Told(
        number=1,
        client="Latency Lab",
        concurrency=8,
        reported=Means(0.1, 0.0202),
        engine=Means(0.098, 0.02),
    )
    *_, line = table([told])
    assert line == ("| 8 | 2 | Latency Lab | 100.00 | 98.00 | 2.00 | 20.20 | 20.00 | 0.20 |")


def test_what_the_engine_does_not_tell_is_empty() -> None:
    told = Told(
        number=0,
        client="vllm bench serve",
        concurrency=1,
        reported=Means(0.1, 0.02),
        engine=Means(NAN, NAN),
    )
    *_, line = table([told])
    assert line == "| 1 | 1 | vllm bench serve | 100.00 |  |  | 20.00 |  |  |"
