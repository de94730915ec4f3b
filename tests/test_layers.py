"""Who may import whom, read off the code, and the rooms without Qt as they really run."""

import ast
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QT = frozenset({"PySide6", "shiboken6", "pyqtgraph", "superqt"})
QT_ROOMS = ("window", "panels", "charts")
# Scripts that run in the engine's environment: torch and transformers are not in the lab's.
ENGINE_SCRIPTS = ROOT / "engine_launcher" / "checkpoints"


def files_of(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the dotted names that a file imports, wherever in it they stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return {name for node in ast.walk(tree) for name in names_in(node, path)}


def names_in(node: ast.AST, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = path.relative_to(ROOT).parent.parts
        parts = [*package[: len(package) - node.level + 1]] if node.level else []
        base = ".".join([*parts, *filter(None, [node.module])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


def roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(path)}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("measurements", QT | {"app", "engine_launcher"}),
        ("engine_launcher", QT | {"app", "measurements"}),
    ],
)
def test_a_room_without_qt_imports_neither_qt_nor_the_other_rooms(
    room: str, forbidden: frozenset[str]
) -> None:
    found = {ids(path): roots(path) & forbidden for path in files_of(room)}
    assert {path: names for path, names in found.items() if names} == {}
    assert len(found) > 5


def test_qt_is_imported_in_window_panels_and_charts_and_nowhere_else_in_app() -> None:
    allowed = tuple(ROOT / "app" / room for room in QT_ROOMS)
    outside = [
        path for path in files_of("app") if not any(path.is_relative_to(room) for room in allowed)
    ]
    assert [ids(path) for path in outside if roots(path) & QT] == []
    assert outside


def test_the_picture_of_the_charts_knows_no_qt() -> None:
    picture = ROOT / "app" / "charts" / "picture.py"
    if not picture.exists():
        pytest.skip("app/charts/picture.py is not there yet")
    assert roots(picture) & QT == set()


def test_nobody_imports_the_tests() -> None:
    users = files_of("app", "measurements", "engine_launcher")
    assert [ids(path) for path in users if roots(path) & {"tests", "fakes", "pytest"}] == []


@pytest.mark.parametrize("name", ["supervisor.py"])
def test_what_runs_without_site_packages_needs_the_standard_library_alone(name: str) -> None:
    assert roots(ROOT / "engine_launcher" / name) <= sys.stdlib_module_names


@pytest.fixture(scope="module")
def without_qt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of links to all that is installed, Qt and pytest-qt left out."""
    folder = tmp_path_factory.mktemp("without_qt")
    left_out = tuple(name.lower() for name in QT | {"pytestqt", "pytest_qt"})
    for place in {*site.getsitepackages(), sysconfig.get_path("platlib")}:
        for installed in Path(place).iterdir():
            link = folder / installed.name
            if not installed.name.lower().startswith(left_out) and not link.exists():
                link.symlink_to(installed)
    return folder


def run_without_qt(without_qt: Path, code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path += [{str(ROOT)!r}, {str(without_qt)!r}]\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", start + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def headless_modules() -> list[str]:
    """Return every module that must import where Qt is not installed."""
    outside = (path for path in files_of("app") if path.parent == ROOT / "app")
    paths = [*files_of("measurements", "engine_launcher"), *outside]
    wanted = (p for p in paths if p.name != "__main__.py" and ENGINE_SCRIPTS not in p.parents)
    return [module_name(path) for path in wanted]


def test_qt_is_really_absent_there(without_qt: Path) -> None:
    for name in sorted(QT - {"superqt"}):
        ended = run_without_qt(without_qt, f"import {name}")
        assert f"No module named '{name}'" in ended.stderr


def test_everything_but_the_window_imports_where_qt_is_absent(without_qt: Path) -> None:
    code = f"import importlib\nfor name in {headless_modules()!r}: importlib.import_module(name)"
    ended = run_without_qt(without_qt, code)
    assert ended.returncode == 0, ended.stderr


# The quick ones: the whole would take minutes.
HEADLESS_TESTS = (
    "measurements/test_statistics.py",
    "measurements/test_summary.py",
    "measurements/test_kv_arithmetic.py",
    "measurements/test_run_folder_tail.py",
    "engine_launcher/test_explanation.py",
    "engine_launcher/test_states.py",
    "engine_launcher/test_urls.py",
)


def test_both_rooms_without_qt_pass_tests_where_qt_is_absent(
    without_qt: Path, tmp_path: Path
) -> None:
    # The project's own configuration names options of pytest-qt.
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    chosen = [str(ROOT / "tests" / name) for name in HEADLESS_TESTS]
    options = [
        "-q",
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
        "-c",
        str(tmp_path / "pytest.ini"),
        "--rootdir",
        str(ROOT),
        "-o",
        f"pythonpath={ROOT} {ROOT / 'tests'}",
    ]
    ended = run_without_qt(
        without_qt, f"import pytest; sys.exit(pytest.main({[*options, *chosen]!r}))"
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " passed" in ended.stdout
