"""`latency-lab measure`: the options, the assignment that they make, and its results."""

import argparse
import sys
import tempfile
from pathlib import Path

from app import report, tool_words
from app.arguments import BadInputError, add_as, levels, one_of, real, whole
from app.interrupts import Interrupts
from app.kv import KvAnswer, engine_answer
from app.measure import Assignment, Outcome, measure
from app.places import Places, find_places, typed_path
from app.terminal import Progress, complain, emit
from engine_launcher.settings import DTYPES, EngineSettings
from engine_launcher.view import EngineView
from measurements import prompts
from measurements.plan import MAX_CONCURRENCY, MAX_RATE, Load, Prompts
from measurements.prompt_sets import SETS, SHARED

_ENGINE = EngineSettings()
_LOAD = Load()
_PROMPTS = Prompts()
_CLOSED_LEVELS = (1, 8)
_OPEN_LEVELS = (MAX_CONCURRENCY,)
_EPILOG = """exit codes: 0 every level measured what was asked, 1 measured less, 2 bad input,
3 the engine failed, 130 interrupted. An API key for --url is read from $LATENCY_LAB_API_KEY."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the lab's own."""
    parser = commands.add_parser(
        "measure",
        help="measure an engine at several concurrency levels, without a screen",
        description="Start an engine, measure it at each level, print the figures, stop it.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    _add_load(parser.add_argument_group("load"))
    _add_prompts(parser.add_argument_group("prompts"))
    _add_engine(parser.add_argument_group("engine"))
    _add_output(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def _add_load(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    streams = "levels (1,8); with --rate the most in flight (256)"
    add("--concurrency", type=levels, metavar="LIST", help=streams)
    rate = real("--rate", 0.001, MAX_RATE)
    add("--rate", type=rate, metavar="R", help="open loop: requests per second, whatever comes")
    arrival = one_of("--arrival", "constant", "poisson")
    add("--arrival", type=arrival, metavar="constant|poisson", help="with --rate (constant)")
    requests = whole("--requests", 1, 1_000_000)
    few = "a level (16, or twice the concurrency, or ten seconds of the rate)"
    add("--requests", type=requests, metavar="N", help=few)
    duration = real("--duration", 0.1, 1_000_000)
    add("--duration", type=duration, metavar="S", help="send so long, a level, at most N requests")
    tokens = whole("--max-tokens", 1, 1_000_000)
    add("--max-tokens", type=tokens, default=_LOAD.max_tokens, metavar="N", help="a reply (64)")
    warmup = whole("--warmup", 0, 10_000)
    add("--warmup", type=warmup, default=_LOAD.warmup, metavar="N", help="not counted (2)")
    temperature = real("--temperature", 0, 2)
    add("--temperature", type=temperature, default=_LOAD.temperature, metavar="T", help="(0.2)")
    add("--ignore-eos", action="store_true", help="replies of the full length (vLLM)")
    limit = real("--timeout", 0.1, 1_000_000)
    add("--timeout", type=limit, default=_LOAD.timeout_s, metavar="S", help="a request (600)")
    idle = real("--idle-timeout", 0.1, 1_000_000)
    silence = "silence within a reply (120)"
    add("--idle-timeout", type=idle, default=_LOAD.idle_timeout_s, metavar="S", help=silence)
    seed = whole("--seed", 0, 2**32 - 1)
    add("--seed", type=seed, default=0, metavar="N", help="of prompts and Poisson schedule (0)")


def _add_prompts(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add("--prompts", metavar="NAME_OR_FILE", help=f"{', '.join(SETS)} or a file (short)")
    tokens = whole("--input-tokens", 1, 10_000_000)
    add("--input-tokens", type=tokens, metavar="N", help="synthetic prompts of exactly N tokens")
    shared = "no unique prefix, so that the prefix cache counts (and --prompts shared)"
    add("--shared-prefix", action="store_true", help=shared)


def _add_engine(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add("--model", metavar="PATH_OR_ID", help="a checkpoint (SmolLM2-135M-Instruct)")
    add("--engine", type=one_of("--engine", "vllm", "transformers"), metavar="vllm|transformers")
    add("--url", help="measure what answers there, and start nothing")
    add("--served-model", metavar="NAME", help="the name that clients ask for (tiny-lm)")
    add("--port", type=whole("--port", 1, 65535), default=_ENGINE.port, help="(8000)")
    length = whole("--max-model-len", 1, 100_000_000)
    add("--max-model-len", type=length, default=_ENGINE.max_model_len, metavar="N", help="(2048)")
    ranks = whole("--tensor-parallel", 1, 64)
    add("--tensor-parallel", type=ranks, default=1, metavar="N", help="ranks (1)")
    add("--dtype", type=one_of("--dtype", *DTYPES), default="auto", metavar="|".join(DTYPES))
    eager = "without compilation, or with (without on a CPU)"
    add("--eager", action=argparse.BooleanOptionalAction, default=None, help=eager)
    space = real("--kv-cache-gib", 0.001, 100_000)
    add("--kv-cache-gib", type=space, default=_ENGINE.kv_cache_gib, metavar="GIB", help="CPU (2)")
    add("--engine-args", default="", metavar="WORDS", help="further ones, as typed in a shell")
    add("--engine-python", type=Path, metavar="PATH", help="the engine's own interpreter")
    limit = real("--start-limit", 1, 100_000)
    add("--start-limit", type=limit, default=_ENGINE.start_limit_s, metavar="S", help="(1200)")


def _add_output(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--out", type=Path, metavar="DIR", help="where run folders go")
    group.add_argument("--json", action="store_true", help="one JSON document on stdout")
    add_as(group)
    group.add_argument("--no-text", action="store_true", help="do not log the replies' text")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and return the exit code."""
    places = find_places()
    task = assignment(arguments, places)
    outcome = measure(task, places.engines, Progress(sys.stderr), Interrupts())
    kv = engine_answer(outcome.engine, arguments.model or _namesake(outcome.engine, places))
    emit(_results(outcome, kv, arguments))
    if outcome.sentence:
        complain(outcome.sentence)
    return int(outcome.exit_code)


def _namesake(engine: EngineView, places: Places) -> str:
    """Return the lab's own checkpoint of the name that an attached server gives its model."""
    folder = places.checkpoints / engine.checkpoint
    known = engine.settings.kind == "attached" and engine.checkpoint and folder.is_dir()
    return str(folder) if known else ""


def _results(outcome: Outcome, kv: KvAnswer | str, arguments: argparse.Namespace) -> str:
    levels_ = outcome.levels
    reports = tool_words.read_reports([level.folder for level in levels_], arguments.tool)
    if arguments.json:
        return report.as_json(outcome, kv, reports)
    heads = [report.head(level.summary, level.concurrency) for level in levels_]
    comparison = tool_words.beside(heads, [level.summary for level in levels_], reports)
    return report.as_table(outcome, kv, comparison)


def assignment(arguments: argparse.Namespace, places: Places) -> Assignment:
    """Return what the options ask for; raise `BadInputError` where that cannot be."""
    runs_dir = typed_path(str(arguments.out or places.runs)).absolute()
    settings = _attached(arguments) if arguments.url else _started(arguments, places)
    load, chosen = _load(arguments), _prompts(arguments)
    _check_writable(runs_dir)
    closed_loop = load.rate is None
    return Assignment(
        settings=settings,
        levels=arguments.concurrency or (_CLOSED_LEVELS if closed_loop else _OPEN_LEVELS),
        load=load,
        prompts=chosen,
        runs_dir=runs_dir,
        requests=arguments.requests,
        keep_text=not arguments.no_text,
    )


def _load(arguments: argparse.Namespace) -> Load:
    if arguments.arrival and arguments.rate is None:
        raise BadInputError("--arrival says how requests come at a rate: give --rate as well.")
    return Load(
        rate=arguments.rate,
        arrival=arguments.arrival or _LOAD.arrival,
        seed=arguments.seed,
        duration_s=arguments.duration,
        warmup=arguments.warmup,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        ignore_eos=arguments.ignore_eos,
        timeout_s=arguments.timeout,
        idle_timeout_s=arguments.idle_timeout,
    )


def _prompts(arguments: argparse.Namespace) -> Prompts:
    """Return the prompts; the set made for it shares its prefix without being told twice."""
    if arguments.prompts and arguments.input_tokens:
        raise BadInputError("--input-tokens makes prompts of its own: drop it or --prompts.")
    default = SHARED if arguments.shared_prefix else _PROMPTS.source
    source = _prompt_source(arguments.prompts or default)
    return Prompts(
        source=source,
        tokens=arguments.input_tokens,
        seed=arguments.seed,
        unique_prefix=not (arguments.shared_prefix or source == SHARED),
    )


def _attached(arguments: argparse.Namespace) -> EngineSettings:
    if arguments.engine:
        raise BadInputError("--url attaches to a running engine and --engine starts one: drop one.")
    return EngineSettings(
        kind="attached", url=arguments.url, served_name=arguments.served_model or ""
    )


def _started(arguments: argparse.Namespace, places: Places) -> EngineSettings:
    length = arguments.max_model_len
    if arguments.max_tokens + (arguments.input_tokens or 1) > length:
        prompt = f"a prompt of {arguments.input_tokens}" if arguments.input_tokens else "a prompt"
        raise BadInputError(
            f"--max-tokens {arguments.max_tokens} leaves no room for {prompt} within "
            f"--max-model-len {length}: ask for fewer tokens or a longer length."
        )
    return EngineSettings(
        kind=arguments.engine or "vllm",
        model=arguments.model or _default_model(places),
        served_name=arguments.served_model or _ENGINE.served_name,
        max_model_len=length,
        tensor_parallel=arguments.tensor_parallel,
        dtype=arguments.dtype,
        port=arguments.port,
        eager=arguments.eager,
        kv_cache_gib=arguments.kv_cache_gib,
        extra_arguments=arguments.engine_args,
        python=arguments.engine_python or places.engine_python,
        start_limit_s=arguments.start_limit,
    )


def _default_model(places: Places) -> str:
    if not places.default_model.is_dir():
        raise BadInputError(
            f"The default model is not at {places.default_model}: run 'make models', or name "
            "another with --model."
        )
    return str(places.default_model)


def _prompt_source(typed: str) -> str:
    """Return a built-in set's name, or a file's full path, after a look whether it can be used."""
    source = typed if typed in SETS else str(typed_path(typed).absolute())
    try:
        prompts.load(source)
    except prompts.PromptError as error:
        raise BadInputError(str(error)) from error
    return source


def _check_writable(folder: Path) -> None:
    """Find out now, and not after a minute of loading, whether runs can be kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInputError(
            f"Runs cannot be kept in {folder}: {error.strerror or error}; name another folder "
            "with --out."
        ) from error
