"""`latency-lab kv`: KV-cache bytes from a model's config.json, or from sizes typed by hand."""

import argparse
import json
from pathlib import Path

from app.arguments import BadInputError, one_of, whole
from app.describe import config_path
from app.kv import DTYPES, TOKENS, KvAnswer, answer, model_answer
from app.places import typed_path
from app.terminal import emit
from measurements.kv.arithmetic import DTYPE_BYTES, MOST, KvShape

_BY_HAND = ("layers", "kv_heads", "head_dim")


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the lab's own."""
    parser = commands.add_parser(
        "kv",
        help="say how many bytes of KV cache a sequence takes",
        description="KV-cache bytes = 2 (K and V) × layers × KV heads × head dim × tokens × bytes "
        "an element × batch, for a model's config.json or for sizes typed by hand.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", metavar="PATH_OR_ID", help="a checkpoint, its config.json, or a cached hub id")
    for name in _BY_HAND:
        option = _option(name)
        add(option, type=whole(option, 1, MOST), metavar="N")
    add("--tokens", type=whole("--tokens", 1, MOST), default=TOKENS, metavar="N", help="(2048)")
    add("--batch", type=whole("--batch", 1, MOST), default=1, metavar="N", help="sequences (1)")
    names = (*DTYPE_BYTES, *DTYPES)
    add("--dtype", type=one_of("--dtype", *names), metavar="NAME", help=", ".join(names))
    add("--json", action="store_true", help="one JSON document on stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer and return 0."""
    found = _answer(arguments)
    emit(
        json.dumps(found.as_json(), indent=2, ensure_ascii=False) if arguments.json else say(found)
    )
    return 0


def say(found: KvAnswer) -> str:
    """Return the answer in words: the arithmetic, bytes, GiB, and what was assumed."""
    return "\n".join([found.formula, f"= {found.gib:.6g} GiB (2^30 bytes)", *found.assumptions])


def _answer(arguments: argparse.Namespace) -> KvAnswer:
    tokens, batch = arguments.tokens, arguments.batch
    dtype = DTYPES.get(arguments.dtype, arguments.dtype) or ""
    sizes = {name: getattr(arguments, name) for name in _BY_HAND}
    given = [_option(name) for name, value in sizes.items() if value is not None]
    if arguments.model:
        if given:
            raise BadInputError(f"--model says the sizes already: leave {', '.join(given)} out.")
        return model_answer(_config(arguments.model), tokens, dtype, batch)
    missing = [_option(name) for name, value in sizes.items() if value is None]
    if missing:
        raise BadInputError(f"Give --model, or type the sizes: {', '.join(missing)} missing.")
    return answer(KvShape(**sizes).layout(), tokens, dtype or "bf16", batch)


def _config(model: str) -> Path:
    return config_path(model) or typed_path(model)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
