"""Copies on this machine's disk: the libraries read local files only."""

from __future__ import annotations

import os
from pathlib import Path

from marin_resources.storage.files import list_files
from marin_resources.storage.filesystems.filesystem import filesystem_of

WEIGHTS = (".safetensors", ".bin")
"""Ends of the files of an export that its tokenizer does not need."""


def copy_to_local(path: str, folder: str, *, but: tuple[str, ...] = ()) -> str:
    """Copy the file or folder at `path` into `folder`, but for files that end with `but`.

    Returns `folder`. Raises FileNotFoundError for an empty path.
    """
    fs, root = filesystem_of(path)
    for source in list_files(path):
        _, name = filesystem_of(source)
        if but and name.endswith(but):
            continue
        target = Path(folder, os.path.basename(name) if name == root else os.path.relpath(name, root))
        target.parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(name, str(target))
    return folder
