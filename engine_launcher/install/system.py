"""What only the system's package manager can bring: shared libraries, and Python's venv module."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine_launcher.install.say import InstallError, Say

# Debian's package, by the library that it brings. Qt needs the first six anywhere.
QT = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
}
# … and these for a window on a real X screen.
QT_ON_X = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
ENGINE = {"libnuma.so.1": "libnuma1"}


@dataclass(frozen=True)
class Machine:
    """What decides how a missing package is come by."""

    root: bool
    apt_get: bool


def this_machine() -> Machine:
    """Look at the machine that we run on."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return Machine(root, shutil.which("apt-get") is not None)


def known_libraries() -> frozenset[str] | None:
    """Return the shared libraries that the linker knows; None where it cannot be asked."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])
    ldconfig = shutil.which("ldconfig", path=path)
    if ldconfig is None:
        return None
    listing = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
    return frozenset(line.split()[0] for line in listing.stdout.splitlines() if "=>" in line)


def missing(wanted: Mapping[str, str]) -> tuple[str, ...]:
    """Name the packages that bring the wanted libraries, and Python's venv, where not there."""
    known = known_libraries()
    lacking = [p for library, p in wanted.items() if known is not None and library not in known]
    if importlib.util.find_spec("ensurepip") is None:
        lacking.append(f"python3.{sys.version_info.minor}-venv")
    return tuple(lacking)


def bring(packages: Sequence[str], machine: Machine, say: Say) -> None:
    """Install packages, or say in one sentence what a person has to install."""
    names = " ".join(packages)
    if not packages:
        return
    if not machine.apt_get:
        raise InstallError(f"Install what Debian has as: {names}.")
    if not machine.root:
        raise InstallError(f"System packages are missing: run sudo apt-get install {names} first.")
    say(f"apt-get install {names}")
    _apt_get("update")
    _apt_get("install", "-y", "--no-install-recommends", *packages)


def _apt_get(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    outcome = subprocess.run(
        ["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    # An update may fail for one source of many; what counts is whether the packages come.
    if outcome.returncode != 0 and "install" in arguments:
        raise InstallError(f"apt-get install failed: {outcome.stderr.strip()}")
