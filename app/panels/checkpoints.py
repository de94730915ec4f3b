"""Checkpoints that lie on this disk. No Qt."""

from pathlib import Path


def find_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder: those of its folders that have a config.json."""
    try:
        found = [path for path in folder.iterdir() if (path / "config.json").is_file()]
    except OSError:
        return []
    return sorted(found, key=lambda path: path.name.lower())


def first_choice(found: list[Path], default: Path) -> Path:
    """Return the default where it is there, or where nothing else is."""
    return default if default in found or not found else found[0]
