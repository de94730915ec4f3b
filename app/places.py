"""Where the lab keeps its runs, engines and checkpoints."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "LATENCY_LAB_HOME"
DEFAULT_CHECKPOINT = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Places:
    """The lab's folders; none of them has to exist yet."""

    root: Path
    runs: Path
    engines: Path
    checkpoints: Path
    engine_python: Path

    @property
    def default_model(self) -> Path:
        """The checkpoint that is served unless a person names another."""
        return self.checkpoints / DEFAULT_CHECKPOINT


def typed_path(text: str) -> Path:
    """Return a path as a shell reads it: the tilde of a user that is not there stands as it is."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def places_in(root: Path) -> Places:
    """Return the places below one root."""
    return Places(
        root=root,
        runs=root / "runs",
        engines=root / "engines",
        checkpoints=root / "checkpoints",
        engine_python=root / ".venv-engine" / "bin" / "python",
    )


def find_places(environment: Mapping[str, str] = os.environ) -> Places:
    """Return the places of this lab: $LATENCY_LAB_HOME, else the checkout, else the user's data."""
    asked = environment.get(HOME_VARIABLE, "").strip()
    if asked:
        return places_in(typed_path(asked).absolute())
    return places_in(_checkout() or _user_data(environment) / "latency-lab")


def _checkout() -> Path | None:
    """Return the repository of an editable install: the folder beside `app` that has a Makefile."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "Makefile").is_file() else None


def _user_data(environment: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
