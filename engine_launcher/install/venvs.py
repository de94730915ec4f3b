"""Virtual environments: built once, taken up again when cut off, renewed with their recipe."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from engine_launcher.environments import python_of
from engine_launcher.install.say import InstallError, Say

NO_SUCH_RELEASE = "No matching distribution found for "
_TAIL_LINES = 12
_SHOWN = ("Collecting", "Downloading", "Processing", "Installing", "Building", "Preparing")


@dataclass(frozen=True)
class Attempt:
    """One `pip install`; where the release is not to be had, `fallback` adds arguments to it."""

    arguments: tuple[str, ...]
    fallback: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """What a virtual environment holds. Recipes of one `kind` may share a folder."""

    name: str
    kind: str
    folder: Path
    attempts: tuple[Attempt, ...]
    inputs: tuple[Path, ...]  # files whose content decides what is installed

    @property
    def stamp(self) -> Path:
        """Return the file that says what was installed last; it is written at the end."""
        return self.folder / f"latency-lab-{self.name}.stamp"


def foundation(recipe: Recipe) -> str:
    """Describe what cannot be changed in place: kind, Python and where the folder lies."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return json.dumps([recipe.kind, python, str(recipe.folder.absolute())])


def fingerprint(recipe: Recipe) -> str:
    """Hash all that decides what is installed."""
    digest = hashlib.sha256(foundation(recipe).encode())
    digest.update(repr(recipe.attempts).encode())
    for path in recipe.inputs:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_ready(recipe: Recipe) -> bool:
    """Tell whether the environment holds what the recipe says."""
    if not os.access(python_of(recipe.folder), os.X_OK):
        return False
    return _read(recipe.stamp) == fingerprint(recipe)


def build(recipe: Recipe, say: Say) -> None:
    """Bring the environment to what the recipe says, from whatever state it is in."""
    if not _is_sound(recipe):
        _create(recipe, say)
    drop_half_installed(recipe.folder)
    for attempt in recipe.attempts:
        _install(recipe.folder, attempt, say)
    recipe.stamp.write_text(fingerprint(recipe), encoding="utf-8")


def _foundation_file(folder: Path) -> Path:
    return folder / "latency-lab-foundation.json"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _is_sound(recipe: Recipe) -> bool:
    if _read(_foundation_file(recipe.folder)) != foundation(recipe):
        return False
    probe = [str(python_of(recipe.folder)), "-m", "pip", "--version"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _create(recipe: Recipe, say: Say) -> None:
    folder = recipe.folder
    if folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").exists():
        raise InstallError(f"{folder} is in the way and is no virtual environment: move it away.")
    say("creating the environment")
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-m", "venv", "--clear", str(folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise InstallError(f"Creating {folder} failed: {_last_line(outcome.stderr)}")
    _foundation_file(folder).write_text(foundation(recipe), encoding="utf-8")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason given."


def drop_half_installed(folder: Path) -> None:
    """Remove the metadata of packages that were being unpacked when an installation was cut off.

    pip writes RECORD last; without it, it would take the package for installed.
    """
    for metadata in folder.glob("lib/python3*/site-packages/*.dist-info"):
        if not (metadata / "RECORD").exists():
            shutil.rmtree(metadata)


def _install(folder: Path, attempt: Attempt, say: Say) -> None:
    log = folder / "latency-lab-pip.log"
    if _pip(folder, attempt.arguments, log, say):
        return
    if (
        attempt.fallback
        and NO_SUCH_RELEASE in log.read_text(encoding="utf-8")
        and _pip(folder, attempt.arguments + attempt.fallback, log, say)
    ):
        return
    tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-_TAIL_LINES:])
    raise InstallError(f"{tail}\npip failed; all that it said is in {log}. Run the same again.")


def _pip(folder: Path, arguments: tuple[str, ...], log: Path, say: Say) -> bool:
    command = [str(python_of(folder)), "-m", "pip", "install", "--progress-bar", "off", *arguments]
    ignored = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET")
    environment = {key: value for key, value in os.environ.items() if key not in ignored}
    with (
        log.open("w", encoding="utf-8") as copy,
        subprocess.Popen(
            command,
            env=environment,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as pip,
    ):
        for line in pip.stdout or ():
            copy.write(line)
            if line.strip().startswith(_SHOWN):
                say(line.strip())
    return pip.returncode == 0
