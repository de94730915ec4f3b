"""Causes of a failed engine that have a sentence of their own, the telling ones first."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine_launcher.problems import Problem, use


@dataclass(frozen=True)
class Rule:
    """A cause that is known: how it reads in a log, and how we say it."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str], str], Problem]


def _gpu_memory(match: re.Match[str], _model: str) -> Problem:
    free, total, share, wanted = match.groups()
    # Rounded down: the nearest hundredth above would not fit.
    offer = math.floor(float(free) / float(total) * 100) / 100
    sentence = (
        f"The GPU has {free} of {total} GiB free, and the engine wants {wanted} GiB "
        f"(utilization {share}): end what else uses the GPU, or add "
        f"--gpu-memory-utilization {offer:.2f}."
    )
    words = f"--gpu-memory-utilization {offer:.2f}"
    return Problem("extra_arguments", sentence, use("extra_arguments", words, f"Use {offer:.2f}"))


def _kv_too_small(match: re.Match[str], _model: str) -> Problem:
    length, needed, available, fits = match.groups()
    sentence = (
        f"A sequence of {length} tokens needs {needed} GiB of KV cache, and {available} GiB are "
        f"available"
    )
    if fits:
        offers = use("max_model_len", int(fits))
        return Problem("max_model_len", f"{sentence}: use a model length of {fits}.", offers)
    return Problem("max_model_len", f"{sentence}: use a shorter model length.")


def _length_too_big(match: re.Match[str], _model: str) -> Problem:
    asked, longest = match[1], int(float(match[2]))
    sentence = f"The model length {asked} is above the {longest} tokens of this model"
    offers = use("max_model_len", longest)
    return Problem("max_model_len", f"{sentence}: take {longest} or less.", offers)


def _heads(match: re.Match[str], _model: str) -> Problem:
    heads, ranks = int(match[1]), int(match[2])
    possible = [n for n in range(1, heads + 1) if heads % n == 0]
    offered = ", ".join(str(n) for n in possible)
    sentence = f"{heads} attention heads cannot be split over {ranks} ranks: take {offered}."
    offers = use("tensor_parallel", max(n for n in possible if n <= ranks))
    return Problem("tensor_parallel", sentence, offers)


def _said(field: str, sentence: str, offer: str | None = None) -> Callable[..., Problem]:
    """Return a rule's answer from a sentence with {1}, {2} … for groups and {model}."""

    def say(match: re.Match[str], model: str) -> Problem:
        words = sentence.format(*(match[0], *match.groups()), model=model)
        return Problem(field, words, use(field, offer))

    return say


RULES = tuple(
    Rule(re.compile(pattern), say)
    for pattern, say in (
        (
            (
                r"Free memory on device \S* ?\(([\d.]+)/([\d.]+) GiB\) on startup is less than "
                r"desired GPU memory utilization \(([\d.]+), ([\d.]+) GiB\)"
            ),
            _gpu_memory,
        ),
        (
            (
                r"max seq len \((\d+)\), \(([\d.]+) GiB KV cache is needed, which is larger than "
                r"the available KV cache memory \(([\d.]+) GiB\)"
                r"(?:.*?estimated maximum model length is (\d+))?"
            ),
            _kv_too_small,
        ),
        (
            (
                r"max_model_len \((\d+)\) is greater than the derived max_model_len "
                r"\(\w+=([\d.]+)"
            ),
            _length_too_big,
        ),
        (r"attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)", _heads),
        (
            (
                r"Available memory on node \d+ \(([\d.]+)/([\d.]+) GiB\) on kv cache allocation is "
                r"less than requested memory for kv \(([\d.]+)"
            ),
            _said(
                "kv_cache_gib",
                "{3} GiB of KV space are asked for and {1} of {2} GiB of memory are free: "
                "ask for less.",
            ),
        ),
        (
            r"No available memory for the cache blocks",
            _said(
                "max_model_len",
                "The weights leave no memory for the KV cache: use a smaller model, or give the "
                "engine a larger share of the memory.",
            ),
        ),
        (
            r"OutOfMemoryError|CUDA out of memory|can't allocate memory|Cannot allocate memory",
            _said(
                "",
                "The engine ran out of memory: use a shorter model length, fewer sequences or a "
                "smaller model.",
            ),
        ),
        (
            r"Not enough allowed NUMA nodes to bind threads of (\d+)",
            _said(
                "environment",
                "{1} ranks need {1} memory nodes on a CPU: set VLLM_CPU_OMP_THREADS_BIND to the "
                "CPUs of each rank, such as 0|1, or use fewer ranks.",
            ),
        ),
        (
            r"Address already in use",
            _said("port", "The port is taken by another program: choose another one."),
        ),
        (
            r"(?:GatedRepoError|gated repo|40[13] Client Error|is restricted)",
            _said(
                "model",
                "The hub gives {model} only to those whom it knows: ask for access on its page, "
                "then set HF_TOKEN.",
            ),
        ),
        (
            (
                r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to|"
                r"Cannot find an appropriate cached snapshot"
            ),
            _said(
                "model",
                "{model} is not on this machine and the hub cannot be reached: give the path of "
                "a folder, or go online.",
            ),
        ),
        (
            r"RepositoryNotFoundError|is not a valid model identifier",
            _said("model", "The hub has no model {model}: check how it is spelt."),
        ),
        (r"HFValidationError", _said("model", "There is no model at {model}.")),
        (
            r"[Cc]an't load tokenizer|Couldn't instantiate the backend tokenizer",
            _said("model", "{model} has no tokenizer: copy its tokenizer files there."),
        ),
        (
            r"Cannot find any model weights",
            _said("model", "{model} has no weights: copy its .safetensors files there."),
        ),
        (
            r"SafetensorError|incomplete metadata|MetadataIncompleteBuffer|PytorchStreamReader",
            _said(
                "model", "A file of weights in {model} is damaged or cut off: fetch it once more."
            ),
        ),
        (
            r"model type `([^`]+)` but Transformers does not recognize",
            _said(
                "model",
                "The engine does not know the architecture “{1}” of {model}: it needs a newer "
                "engine, or another model.",
            ),
        ),
        (
            r"Model architectures? (\[[^\]]+\]).* (?:are|is) not supported",
            _said(
                "kind",
                "vLLM does not support the architecture {1}: try the engine “transformers”.",
                "transformers",
            ),
        ),
        (
            r"Bfloat16 is only supported on GPUs with compute capability",
            _said("dtype", "This GPU has no bfloat16: choose float16.", "float16"),
        ),
        (
            r"argument --dtype: invalid choice: '([^']+)'",
            _said("dtype", "“{1}” is no dtype that the engine knows: choose auto.", "auto"),
        ),
        (
            r"unrecognized arguments: (.*)",
            _said("extra_arguments", "The engine does not know {1}: check the further arguments."),
        ),
        (
            r"No module named '?([\w.]+)",
            _said("python", "The engine's environment lacks {1}: `make engine` mends it."),
        ),
    )
)
