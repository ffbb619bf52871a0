"""A project of one's own: the folder whose pyproject.toml has a table [tool.marin], with settings as in marin.toml.

`marin init` makes such a folder.
"""

from __future__ import annotations

import re
from pathlib import Path

FILE = "pyproject.toml"
_TABLE = re.compile(r"^[ \t]*\[[ \t]*tool\.marin[ \t]*\]", re.MULTILINE)


def own_project() -> Path | None:
    """The project that the working folder is in: it, or the nearest folder above with the table. None without one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        try:
            text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
        except OSError:  # it does not exist, or belongs to another user: then the folder is no project of this one
            continue
        if _TABLE.search(text):
            return folder
    return None
