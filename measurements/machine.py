"""What a run was measured on: machine, packages and revision, for run.json."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("latency-lab", "openai", "httpx2", "httptools", "msgspec", "uvloop", "numpy")
_ANSWER_LIMIT_S = 5.0


def describe() -> dict[str, Any]:
    """Return CPU, memory, GPU, system and Python; what is not known is None."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "gpu": _gpus(),
        "python": platform.python_version(),
    }


def packages() -> dict[str, str]:
    """Return the versions of the packages that a figure may depend on."""
    return {name: version for name in PACKAGES if (version := _version(name))}


def git_revision() -> str | None:
    """Return the revision of the lab's own checkout, None where it is installed without one."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    return _output("git", "-C", str(root), "rev-parse", "HEAD")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or None


def _gpus() -> list[str] | None:
    fields = "--query-gpu=name,memory.total,driver_version"
    answer = _output("nvidia-smi", fields, "--format=csv,noheader")
    return answer.splitlines() if answer else None


def _output(*command: str) -> str | None:
    """Return what a command prints, None where it is missing, fails or does not answer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_LIMIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
