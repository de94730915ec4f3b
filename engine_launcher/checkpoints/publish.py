"""A checkpoint's folder appears whole or not at all."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

RECIPE_FILE = "recipe.json"


def publish(out: Path, recipe: str, make: Callable[[Path], None]) -> bool:
    """Let `make` fill a temporary folder and rename it to `out`; False if `out` is there already.

    A folder made by another recipe is made anew; one that holds no recipe of ours is left alone
    and refused (`FileExistsError`).
    """
    if made_by(out) == recipe:
        return False
    if out.exists() and made_by(out) is None:
        raise FileExistsError(f"{out} exists and was not made by the lab: move it away first.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        folder = Path(scratch) / out.name
        folder.mkdir()
        make(folder)
        for file in folder.iterdir():
            file.chmod(0o644)  # safetensors writes for its owner alone
        (folder / RECIPE_FILE).write_text(json.dumps({"recipe": recipe}) + "\n", encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        folder.rename(out)
    return True


def made_by(folder: Path) -> str | None:
    """Name the recipe that a folder was made by; None where it is not one of ours."""
    try:
        recipe = json.loads((folder / RECIPE_FILE).read_text(encoding="utf-8"))["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(recipe)


def run_as_script(recipe: str, make: Callable[[Path], None]) -> int:
    """Publish into the folder that the command line names, and say what happened."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the script's name and one folder
        sys.stderr.write("usage: python -m engine_launcher.checkpoints.NAME FOLDER\n")
        return 2
    out = Path(sys.argv[1])
    try:
        made = publish(out, recipe, make)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{out}: {'made' if made else 'already there'}\n")
    return 0
