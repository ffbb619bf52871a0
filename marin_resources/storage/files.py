"""Files below a path of any store: list them, read them, and write them whole or not at all.

A path is a plain URL string ("gs://bucket/a/b") or a local path. Names that begin with a dot are
control files (status, record, lease, attempts) and are never data.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import fsspec

TEMPORARY_SUFFIX = ".tmp"
"""Of a hidden file that is being written, on a local disk."""


def filesystem_of(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The store that `path` lies in, and the path as that store spells it."""
    if is_local(path):
        return fsspec.core.url_to_fs(path)
    # A listing that is remembered hides what another process has written or removed since.
    return fsspec.core.url_to_fs(path, use_listings_cache=False)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """A file as its store tells of it."""

    path: str
    name: str
    """Its path below the folder that was listed."""
    size_bytes: int
    stamp: str
    """Changes when the file does: generation or entity tag, on disk the time of its last change in ns."""


def stored_files(path: str) -> list[StoredFile]:
    """Every data file below `path`, or `path` itself if it is a file; sorted by name, control files left out.

    Raises FileNotFoundError if there is nothing at `path`.
    """
    fs, root = filesystem_of(path)
    found = fs.find(root, detail=True)
    if not found and not fs.exists(root):
        raise FileNotFoundError(f"There is nothing at {path!r}.")
    files = []
    for stored, info in found.items():
        name = stored[len(root) :].strip("/") or stored.rpartition("/")[2]
        if not _is_hidden(name):
            spelled = fs.unstrip_protocol(stored) if "://" in path else stored
            files.append(StoredFile(path=spelled, name=name, size_bytes=info["size"] or 0, stamp=_stamp(info)))
    return sorted(files, key=lambda file: file.name)


def sizes_below(path: str) -> dict[str, int]:
    """Name below `path` -> bytes, of every file there, control files too; empty if there is nothing."""
    fs, root = filesystem_of(path)
    return {stored[len(root) :].strip("/"): info["size"] or 0 for stored, info in fs.find(root, detail=True).items()}


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    fs, p = filesystem_of(path)
    with suppress(FileNotFoundError):
        fs.rm_file(p)


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it. Raises FileNotFoundError if it is not there."""
    fs, p = filesystem_of(path)
    fs.rm(p, recursive=True)


def _stamp(info: dict[str, Any]) -> str:
    for key in ("generation", "ETag", "etag", "md5Hash"):
        if info.get(key):
            return str(info[key])
    if info.get("type") == "file" and isinstance(info.get("mtime"), float):
        return str(os.stat(info["name"]).st_mtime_ns) if os.path.exists(info["name"]) else str(info["mtime"])
    return str(info.get("mtime") or info.get("LastModified") or info.get("created") or "")


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
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY_SUFFIX}")
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
