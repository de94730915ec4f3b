"""What lies in the repository holds anywhere: it names no machine and no package registry."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = re.compile(r"\.venv.*|\.git|.*_cache|\.hypothesis|__pycache__|.*\.egg-info|build|dist")
A_PERSONS_OWN = {"checkpoints", "runs", "engines", "exports"}
# Written so that this file does not name them either. PyTorch's own index may be named.
REGISTRIES = re.compile(r"pypi\.(?:org|python)|python" + r"hosted|anaconda\.org|/(?:opt|srv)/py")
MACHINES = re.compile(r"(?<![\w.~-])/(?:root|work|home/\w+|Users/\w+)/")


def texts() -> dict[str, str]:
    found = {}
    for place, folders, names in os.walk(ROOT):
        own = A_PERSONS_OWN if Path(place) == ROOT else set()
        folders[:] = [each for each in folders if not BUILT.fullmatch(each) and each not in own]
        for path in (Path(place, name) for name in names):
            found[str(path.relative_to(ROOT))] = path.read_bytes().decode("utf-8", "replace")
    return found


@pytest.fixture(scope="module")
def tree() -> dict[str, str]:
    found = texts()
    assert {"Makefile", "README.md", "tests/setup/test_tree.py"} <= set(found)
    return found


@pytest.mark.parametrize("forbidden", [REGISTRIES, MACHINES], ids=["registry", "machine"])
def test_no_file_names_it(tree: dict[str, str], forbidden: re.Pattern[str]) -> None:
    hits = [
        f"{name}: {hit.group()}" for name, text in tree.items() for hit in forbidden.finditer(text)
    ]
    assert hits == []


def test_the_licence_is_the_whole_of_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
