from pathlib import Path

import pytest

from engine_launcher.install import system
from engine_launcher.install.say import InstallError
from engine_launcher.install.system import Machine

WANTED = {"libc.so.6": "libc6", "libnothing.so.9": "libnothing9"}


def quiet(_text: str) -> None:
    """Say nothing."""


def apt_get(folder: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int = 0) -> Path:
    """Put an apt-get on the path that notes what it is asked; returns its notes."""
    notes = folder / "notes"
    program = folder / "apt-get"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {notes}\necho no such package >&2\nexit {exit_code}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return notes


def test_only_libraries_that_the_linker_does_not_know_are_missing() -> None:
    assert system.missing(WANTED) == ("libnothing9",)


def test_without_the_rights_of_root_the_command_is_named() -> None:
    with pytest.raises(InstallError, match=r"run sudo apt-get install libone1 libtwo2 first\.$"):
        system.bring(["libone1", "libtwo2"], Machine(root=False, apt_get=True), quiet)


def test_without_apt_the_packages_are_named() -> None:
    with pytest.raises(InstallError, match=r"^Install what Debian has as: libone1\.$"):
        system.bring(["libone1"], Machine(root=True, apt_get=False), quiet)


def test_root_installs_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = apt_get(tmp_path, monkeypatch)
    system.bring(["libone1"], Machine(root=True, apt_get=True), quiet)
    assert notes.read_text().splitlines() == [
        "-qq update",
        "-qq install -y --no-install-recommends libone1",
    ]


def test_a_failing_apt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt_get(tmp_path, monkeypatch, exit_code=100)
    with pytest.raises(InstallError, match=r"^apt-get install failed: no such package$"):
        system.bring(["libone1"], Machine(root=True, apt_get=True), quiet)


def test_nothing_missing_asks_nobody() -> None:
    system.bring([], Machine(root=False, apt_get=False), quiet)
