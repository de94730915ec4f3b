"""Settings → what is run: command line, environment, and what the lab decided on the way."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine_launcher import devices, environments, model_folder, urls
from engine_launcher.environments import InstalledEngine
from engine_launcher.settings import EngineSettings

ENGINE_ID = "LATENCY_LAB_ENGINE_ID"  # in the environment of all of an engine's processes
API_KEY = "LATENCY_LAB_API_KEY"

_GIB = 2**30
_HIDDEN = "…"
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)

# What belongs to the lab's own interpreter, window or shell, and would mislead the engine's.
_NOT_INHERITED = (
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "QT_PLUGIN_PATH",
    "QT_QPA_PLATFORM",
    "QT_QPA_PLATFORM_PLUGIN_PATH",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "VLLM_CPU_KVCACHE_SPACE",  # it would win over the KV space that the settings ask for
    API_KEY,
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One engine, ready to be run. `variables` are what the lab adds to the environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    notes: tuple[str, ...] = ()
    served_model: str
    version: str
    device: str


@dataclass(frozen=True)
class _Parts:
    """What an engine's adapter decides: arguments after the interpreter, variables, notes."""

    arguments: list[str]
    served_model: str
    variables: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def plan_launch(
    settings: EngineSettings, engine_id: str = "", inherited: Mapping[str, str] = os.environ
) -> Launch:
    """Return how this engine is started. ValueError where the extra arguments do not parse."""
    installed = find(settings)
    python = installed.python if installed else interpreter(settings)
    device = device_name(installed)
    adapter = _vllm if settings.kind == "vllm" else _transformers
    parts = adapter(settings, device == "CPU")
    variables = _common_variables(settings) | parts.variables
    variables |= _api_key_variable(settings) | dict(settings.environment)
    if engine_id:
        variables[ENGINE_ID] = engine_id
    return Launch(
        command=(str(python), *parts.arguments),
        environment=_environment(python, variables, inherited),
        variables=variables,
        notes=tuple(parts.notes),
        served_model=parts.served_model,
        version=str(installed or ""),
        device=device,
    )


def shell_line(launch: Launch) -> str:
    """Return the line to paste into a shell: the variables that matter, then the command."""
    shown = {name: _HIDDEN if _SECRET.search(name) else value for name, value in _own(launch)}
    words = [f"{name}={shlex.quote(value)}" for name, value in shown.items()]
    return " ".join([*words, shlex.join(launch.command)])


def find(settings: EngineSettings) -> InstalledEngine | None:
    """Return the engine that these settings would start; None where it is not installed."""
    return environments.find_engine(settings.kind, settings.python)


def interpreter(settings: EngineSettings) -> Path:
    """Return where the engine's interpreter should be: the person's, or the lab's .venv-engine."""
    return settings.python or environments.python_of(environments.engine_folder())


def cpu_only(installed: InstalledEngine | None) -> bool:
    """Whether an engine computes on the CPU, whatever else the machine has."""
    if installed is None:
        return False
    torch = environments.installed_version(installed.python, "torch") or ""
    return installed.distribution == "vllm-cpu" or torch.endswith("+cpu")


def device_name(installed: InstalledEngine | None) -> str:
    """Return "CPU", the first GPU's name, or "" where neither is certain."""
    if cpu_only(installed):
        return "CPU"
    gpus = devices.nvidia_gpus()
    return gpus[0] if gpus else ""


def api_key(settings: EngineSettings, inherited: Mapping[str, str] = os.environ) -> str:
    """Return the key that this engine asks for, or "": typed arguments first, then variables."""
    own = _split_api_key(settings)[1]
    if own or settings.kind != "attached":
        return own or settings.environment.get("VLLM_API_KEY", "")
    return settings.environment.get(API_KEY) or inherited.get(API_KEY, "")


def extra_arguments(settings: EngineSettings) -> list[str]:
    """Return the further arguments, split as a shell splits words, without the API key."""
    return _split_api_key(settings)[0]


def _split_api_key(settings: EngineSettings) -> tuple[list[str], str]:
    """Part the arguments from the key: a key among them could be read by everybody in `ps`."""
    kept: list[str] = []
    keys: list[str] = []
    in_keys = False
    for word in shlex.split(settings.extra_arguments):
        name, has_value, value = word.partition("=")
        if name == "--api-key":
            in_keys = not has_value
            keys += [value] if has_value else []
        elif in_keys and not word.startswith("-"):
            keys.append(word)
        else:
            in_keys = False
            kept.append(word)
    return kept, keys[0] if keys else ""


def _vllm(settings: EngineSettings, on_cpu: bool) -> _Parts:
    model = _model_argument(settings)
    arguments = ["-m", "vllm.entrypoints.openai.api_server", "--model", model]
    if settings.served_name:
        arguments += ["--served-model-name", settings.served_name]
    arguments += ["--host", settings.host, "--port", str(settings.port)]
    if settings.max_model_len is not None:
        arguments += ["--max-model-len", str(settings.max_model_len)]
    if settings.tensor_parallel > 1:
        arguments += ["--tensor-parallel-size", str(settings.tensor_parallel)]
    if settings.dtype != "auto":
        arguments += ["--dtype", settings.dtype]
    # Queue and prefill time of each request, and its tokens from the prefix cache.
    arguments += ["--enable-per-request-metrics", "--enable-prompt-tokens-details"]
    parts = _Parts(arguments, settings.served_name or model)
    if settings.eager or (settings.eager is None and on_cpu):
        arguments.append("--enforce-eager")
    if on_cpu:
        _fit_to_cpu(parts, settings)
    # Last, so that what a person typed wins over what the lab chose.
    parts.arguments.extend(extra_arguments(settings))
    return parts


def _fit_to_cpu(parts: _Parts, settings: EngineSettings) -> None:
    if settings.eager is None:
        parts.notes.append("Eager mode: compiling takes minutes on a CPU. Eager off compiles.")
    # Not VLLM_CPU_KVCACHE_SPACE: vLLM 0.32 reads that as a whole number of GiB.
    kv_bytes = round(settings.kv_cache_gib * _GIB)
    parts.arguments.extend(("--kv-cache-memory-bytes", str(kv_bytes)))
    ranks = settings.tensor_parallel
    if ranks > devices.numa_nodes():
        binding = cpu_binding(ranks, devices.usable_cpus())
        parts.variables["VLLM_CPU_OMP_THREADS_BIND"] = binding
        parts.notes.append(
            f"{ranks} ranks share one memory node: threads are bound to the CPUs {binding}."
        )


def cpu_binding(ranks: int, cpus: list[int]) -> str:
    """Return the CPUs of each rank, as VLLM_CPU_OMP_THREADS_BIND wants them: "0,1|2,3"."""
    share = max(1, len(cpus) // ranks)
    starts = [(rank * share) % len(cpus) for rank in range(ranks)]
    return "|".join(",".join(str(cpu) for cpu in cpus[start : start + share]) for start in starts)


def _transformers(settings: EngineSettings, _on_cpu: bool) -> _Parts:
    model = _model_argument(settings)
    arguments = ["-m", "transformers.cli.transformers", "serve", model]
    arguments += ["--host", settings.host, "--port", str(settings.port)]
    if settings.dtype != "auto":
        arguments += ["--dtype", settings.dtype]
    notes = ["The generate loop serves the model under its path or id, and limits no length."]
    return _Parts(arguments + extra_arguments(settings), model, notes=notes)


def _model_argument(settings: EngineSettings) -> str:
    if model_folder.is_local(settings.model):
        return str(Path(settings.model).expanduser().absolute())
    return settings.model


def _common_variables(settings: EngineSettings) -> dict[str, str]:
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "SPT_NOENV": "1",  # process titles would overwrite the environment that the sweep reads
        "PYTHONUNBUFFERED": "1",
    }
    if model_folder.is_local(settings.model):
        variables["HF_HUB_OFFLINE"] = "1"
    return variables


def _api_key_variable(settings: EngineSettings) -> dict[str, str]:
    key = _split_api_key(settings)[1]
    return {"VLLM_API_KEY": key} if key else {}


def _environment(
    python: Path, variables: Mapping[str, str], inherited: Mapping[str, str]
) -> dict[str, str]:
    kept = {name: value for name, value in inherited.items() if name not in _NOT_INHERITED}
    kept.update(variables)
    path = kept.get("PATH", os.defpath)
    return kept | {"PATH": os.pathsep.join((str(python.absolute().parent), path))}


def _own(launch: Launch) -> list[tuple[str, str]]:
    hidden = (ENGINE_ID, "PYTHONUNBUFFERED", "SPT_NOENV", "HF_HUB_DISABLE_UPDATE_CHECK")
    return [(name, value) for name, value in launch.variables.items() if name not in hidden]


def base_url(settings: EngineSettings) -> str:
    """Return where clients reach the engine, in normal form; ValueError for a URL that is none."""
    if settings.kind == "attached":
        return urls.normal_form(settings.url)
    return urls.of(settings.host, settings.port)
