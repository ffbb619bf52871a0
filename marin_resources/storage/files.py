"""Files below a path of any store: list them, read them, and write them whole or not at all.

A path is a plain URL string ("gs://bucket/a/b") or a local path. Names that begin with a dot are
control files (status, record, lease, attempts) and are never data.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import fsspec


def filesystem_of(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The store that `path` lies in, and the path as that store spells it."""
    return fsspec.core.url_to_fs(path)


def join(path: str, *names: str) -> str:
    """Names below a path, with single slashes."""
    return "/".join([path.rstrip("/"), *(name.strip("/") for name in names)])


def is_local(path: str) -> bool:
    """Whether `path` lies on this machine's disk."""
    return "://" not in path or path.startswith("file://")


def exists(path: str) -> bool:
    fs, p = filesystem_of(path)
    return fs.exists(p)


def list_files(path: str, suffix: str = "") -> list[str]:
    """Every data file below `path`, or `path` itself if it is a file; sorted, control files left out.

    Raises FileNotFoundError if there is nothing at `path`.
    """
    fs, root = filesystem_of(path)
    if fs.isfile(root):
        return [path]
    if not fs.exists(root):
        raise FileNotFoundError(f"There is nothing at {path!r}.")
    found = (name for name in fs.find(root) if name.endswith(suffix) and not _is_hidden(name[len(root) :]))
    return sorted(fs.unstrip_protocol(name) if "://" in path else name for name in found)


def read_json(path: str) -> Any:
    """The JSON value in a file. Raises FileNotFoundError, and ValueError that names the file."""
    fs, p = filesystem_of(path)
    text = fs.cat_file(p)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path!r} is not JSON ({error}). Look at the file; move it aside if it is damaged."
        ) from error


def write_json(path: str, value: Any) -> None:
    """Write `value` as JSON, whole or not at all."""
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def write_bytes(path: str, data: bytes) -> None:
    """Write `data` to a file, whole or not at all; a reader sees the old file or the new one."""
    with open_atomic(path) as file:
        file.write(data)


@contextmanager
def open_atomic(path: str) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` when the block ends well, and never if it does not."""
    fs, p = filesystem_of(path)
    folder, name = os.path.split(p)
    if not is_local(path):
        # An object appears in the bucket when its upload is closed; until then there is nothing to see.
        with fs.transaction, fs.open(p, "wb") as file:
            yield file
        return
    fs.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, p)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))
