"""A run gets a folder of its own: named by time, checkpoint and concurrency; never shared."""

import itertools
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from measurements.plan import Plan
from measurements.run_folder.errors import RunFolderError

PLAN_FILE = "plan.json"
_LONGEST_NAME = 80  # characters of the checkpoint's name: file systems allow 255 bytes in all


def create(root: Path, checkpoint: str, concurrency: int, now: datetime | None = None) -> Path:
    """Make `<UTC time>-<checkpoint>-c<concurrency>[-n]` under `root` and return its path."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    name = f"{moment:%Y%m%dT%H%M%SZ}-{safe_name(checkpoint)}-c{concurrency}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        return _first_free(root, name)
    except (FileExistsError, NotADirectoryError) as error:
        raise RunFolderError(
            f"Runs cannot be kept in {root}: that is not a folder. Choose a folder."
        ) from error
    except OSError as error:
        raise RunFolderError(
            f"Runs cannot be kept in {root}: {error.strerror or error}. Choose another folder."
        ) from error


def _first_free(root: Path, name: str) -> Path:
    for n in itertools.count(1):
        folder = root / (name if n == 1 else f"{name}-{n}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError  # count() does not end


def safe_name(checkpoint: str) -> str:
    """Return the last part of a name, path or hub id, fit for a folder's name."""
    last = re.split(r"[/\\]", checkpoint.rstrip("/\\ "))[-1]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", last)[:_LONGEST_NAME].strip(".-")
    return plain or "unnamed"


def write_plan(folder: Path, plan: Plan) -> Path:
    """Write the plan beside where the run's files will be; never over another plan."""
    path = folder / PLAN_FILE
    try:
        with path.open("xb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path


def read_plan(folder: Path) -> Plan:
    """Return the plan of a run folder."""
    path = folder / PLAN_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise RunFolderError(f"{path} is not a plan of Latency Lab: {error}.") from error
