"""The folders of the records of adopted inputs, for a function that reads records beside its inputs.

A function gets the paths of data, and adopted data have no record beside them, or that of another version. The worker
sets these places around the call of a function, in its own process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_folders: Mapping[str, str] = {}


@contextmanager
def records_at(folders: Mapping[str, str]) -> Iterator[None]:
    """In the block: path of an adopted input, as the function gets it -> the output's own path. A process works for
    one step at a time."""
    global _folders
    before, _folders = _folders, folders
    try:
        yield
    finally:
        _folders = before


def record_folder(path: str) -> str:
    """The folder with the record of the input at `path`: the input's own path, if it is adopted."""
    return _folders.get(path.rstrip("/"), path)
