from pathlib import Path

import pytest

from engine_launcher.log_reading import Reading, read_on

LOGS = Path(__file__).parent / "logs"


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text("utf-8").replace("\r", "").split("\n")


def test_a_start_passes_through_its_phases_in_order() -> None:
    reading, phases = Reading(), []
    for line in lines("start_eager_then_stop.log"):
        reading = read_on(reading, [line])
        if reading.phase not in phases[-1:]:
            phases.append(reading.phase)
    assert phases == [
        "",
        "reading the configuration",
        "starting the engine core",
        "loading weights",
        "loading weights, 0 %",
        "loading weights, 100 %",
        "preparing the KV cache",
        "warming up",
        "starting the server",
        "waiting for the first answer",
    ]


def test_the_engines_own_figures_are_read_from_a_real_log() -> None:
    assert read_on(Reading(), lines("start_eager_then_stop.log")).figures == {
        "max_model_len": 2048,
        "checkpoint_gib": 0.25,
        "load_weights_s": 1.04,
        "kv_cache_gib": 2.0,
        "kv_tokens": 93_184,
        "max_concurrency": 45.5,
        "init_engine_s": 6.08,
    }


def test_compilation_is_a_phase() -> None:
    text = lines("start_compile_then_stop.log")
    until_compiled = next(n for n, line in enumerate(text) if "saved AOT compiled" in line)
    assert read_on(Reading(), text[:until_compiled]).phase == "compiling"


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        (
            "(EngineCore pid=1) INFO Model loading took 14.99 GiB memory and 3.210000 seconds",
            {"model_memory_gib": 14.99, "load_model_s": 3.21},
        ),
        ("Available KV cache memory: 3.18 GiB", {"kv_cache_gib": 3.18}),
        (
            (
                "GPU KV cache size: 34,736 tokens, "
                "Maximum concurrency for 2,048 tokens per request: 16.96x"
            ),
            {"kv_tokens": 34_736, "max_model_len": 2048, "max_concurrency": 16.96},
        ),
        ("torch.compile took 21.50 s in total", {"compile_s": 21.5}),
        (
            "Graph capturing finished in 12 secs, took 0.53 GiB",
            {"capture_s": 12, "cuda_graph_gib": 0.53},
        ),
        ("INFO: nothing to see", {}),
    ],
)
def test_a_line_of_a_gpu_engine_gives_its_figures(line: str, figures: dict[str, float]) -> None:
    assert read_on(Reading(), [line]).figures == figures


def test_silence_keeps_phase_and_figures() -> None:
    loading = read_on(Reading(), ["Starting to load model x..."])
    assert read_on(loading, []) == loading
    assert read_on(loading, ["some other line"]) == loading
