from pathlib import Path

import pytest

from engine_launcher.explanation import explain, explain_status
from engine_launcher.problems import Problem

LOGS = Path(__file__).parent / "logs"

GENERIC_END = """\
(EngineCore pid=2) ERROR 12-01 12:09:57 [core.py:1510] EngineCore failed to start.
(EngineCore pid=2) ERROR 12-01 12:09:57 [core.py:1510] Traceback (most recent call last):
{frames}
(EngineCore pid=2) ERROR 12-01 12:09:57 [core.py:1510] {cause}
Traceback (most recent call last):
{frames}
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"""


def engine_log(cause: str) -> list[str]:
    frame = '  File "site-packages/vllm/v1/engine/core.py", line 1482, in run_engine_core'
    return GENERIC_END.format(cause=cause, frames="\n".join([frame] * 60)).split("\n")


def explained(name: str) -> Problem | None:
    return explain((LOGS / name).read_text("utf-8").split("\n"))


def offered(problem: Problem) -> object:
    return problem.offers[0].value if problem.offers else None


@pytest.mark.parametrize(
    ("name", "field", "words", "offer"),
    [
        ("bad_dtype.log", "dtype", ["float12"], "auto"),
        ("core_killed.log", "", ["core was killed", "memory"], None),
        ("hub_offline.log", "model", ["someorg/some-model", "hub cannot be reached"], None),
        ("max_len_too_big.log", "max_model_len", ["100000", "8192"], 8192),
        ("missing_path.log", "model", ["There is no model at ./checkpoints/nope"], None),
        ("no_weights.log", "model", ["./m_noweights has no weights"], None),
        ("port_in_use.log", "port", ["taken"], None),
        ("tp2_one_numa_node_cpu.log", "environment", ["VLLM_CPU_OMP_THREADS_BIND"], None),
        ("tp_not_divisible.log", "tensor_parallel", ["9 attention heads", "1, 3, 9"], 1),
        ("truncated_weights.log", "model", ["./m_trunc", "damaged or cut off"], None),
        ("unknown_arch.log", "model", ["foo", "./m_arch"], None),
        ("unknown_flag.log", "extra_arguments", ["--no-such-flag"], None),
    ],
)
def test_a_real_log_is_explained_in_one_sentence(
    name: str, field: str, words: list[str], offer: object
) -> None:
    problem = explained(name)
    assert problem.field == field
    assert all(word in problem.sentence for word in words)
    assert offered(problem) == offer
    assert problem.sentence.count(". ") == 0
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN" not in problem.sentence


@pytest.mark.parametrize("name", ["start_eager_then_stop.log", "start_compile_then_stop.log"])
def test_what_a_stop_leaves_in_a_log_is_no_failure(name: str) -> None:
    assert explained(name) is None


def test_gpu_memory_is_the_headline_though_sixty_lines_follow() -> None:
    problem = explain(
        engine_log(
            "ValueError: Free memory on device cuda:0 (3.1/23.6 GiB) on startup is less than "
            "desired GPU memory utilization (0.9, 21.2 GiB). Decrease GPU memory utilization or "
            "reduce GPU memory used by other processes."
        )
    )
    assert "3.1 of 23.6 GiB" in problem.sentence
    assert "21.2 GiB" in problem.sentence
    assert offered(problem) == "--gpu-memory-utilization 0.13"


def test_a_share_of_gpu_memory_is_rounded_down() -> None:
    problem = explain(
        engine_log(
            "ValueError: Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than "
            "desired GPU memory utilization (0.90, 19.85 GiB)."
        )
    )
    assert offered(problem) == "--gpu-memory-utilization 0.89"


def test_a_kv_space_that_is_too_small_gives_its_three_numbers() -> None:
    problem = explain(
        engine_log(
            "ValueError: To serve at least one request with the model's max seq len (262144), "
            "(24.0 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(3.18 GiB). Based on the available memory, the estimated maximum model length is "
            "34736. Try increasing `gpu_memory_utilization`."
        )
    )
    assert problem.field == "max_model_len"
    assert offered(problem) == 34736
    assert all(number in problem.sentence for number in ("262144", "24.0 GiB", "3.18 GiB"))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "HF_TOKEN"),
        ("OSError: Can't load tokenizer for './m'.", "no tokenizer"),
        (
            "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error.",
            "check how it is spelt",
        ),
        ("ModuleNotFoundError: No module named 'vllm'", "lacks vllm"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "ran out of memory",
        ),
        (
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.",
            "choose float16",
        ),
    ],
)
def test_a_known_cause_has_a_sentence_of_its_own(cause: str, words: str) -> None:
    assert words in explain(engine_log(cause)).sentence


def test_a_log_that_does_not_name_the_model_is_helped_out() -> None:
    problem = explain(["safetensors_rust.SafetensorError: incomplete metadata"], "./m")
    assert "A file of weights in ./m is damaged" in problem.sentence


def test_an_unknown_cause_is_quoted_and_not_the_generic_end() -> None:
    problem = explain(engine_log("KeyError: 'some.weight.nobody.knows'"))
    assert problem.sentence == "The engine failed: KeyError: 'some.weight.nobody.knows'."


def test_a_long_cause_is_shortened() -> None:
    problem = explain(engine_log("RuntimeError: " + "x" * 5000))
    assert len(problem.sentence) < 350


def test_a_warning_that_mentions_an_error_is_no_cause() -> None:
    line = "(APIServer pid=1) WARNING 12-01 12:02:06 [a.py:1] This can cause `OSError: [Errno 24]`."
    assert explain([line]) is None


@pytest.mark.parametrize(
    ("status", "words"), [(-9, "out of memory"), (-11, "SIGSEGV"), (3, "exit code 3")]
)
def test_an_exit_status_speaks_where_the_log_does_not(status: int, words: str) -> None:
    assert words in explain_status(status)
