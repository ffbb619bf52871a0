"""Packages for tests to install: tiny wheels in a folder that stands for the index."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".tools" / "bin"
PATH = f"{os.environ['PATH']}{os.pathsep}{TOOLS}"
"""With a second uv, that of the Makefile."""


def wheel(folder: Path, name: str, version: str, *requires: str) -> None:
    """A package with one module, whose `version` is its own."""
    module = name.replace("-", "_")
    told = f"{module}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{module}/__init__.py", f"version = {version!r}\n")
        file.writestr(f"{told}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        file.writestr(f"{told}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{told}/RECORD", "")


def only_from(index: Path, cache: Path) -> dict[str, str]:
    """Variables by which packages come from this folder alone, and are put into that one."""
    return {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(index), "MARIN_PACKAGES_DIR": str(cache), "PATH": PATH}
