"""A wheel made on the spot, so that real installations need no network."""

import zipfile
from pathlib import Path


def make_wheel(folder: Path, version: str = "1.0") -> Path:
    """Write the package `tiny-thing`, which has one module that knows its version."""
    info = f"tiny_thing-{version}.dist-info"
    files = {
        "tiny_thing.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-thing\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"tiny_thing-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return wheel
