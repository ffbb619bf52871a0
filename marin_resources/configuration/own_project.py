"""A project of one's own: the folder whose pyproject.toml has a table [tool.marin], with settings as in marin.toml.

`marin init` makes such a folder.
"""

from __future__ import annotations

from pathlib import Path

FILE, TABLE = "pyproject.toml", "[tool.marin]"


def own_project() -> Path | None:
    """The project that the working folder is in: it, or the nearest folder above with the table. None without one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / FILE
        if file.is_file() and TABLE in file.read_text(encoding="utf-8", errors="replace"):
            return folder
    return None
