"""Files below a path of any store: list them, read them, and write them whole or not at all.

A path is a plain URL string ("gs://bucket/a/b") or a local path. Names that begin with a dot are
control files (status, record, lease, attempts) and are never data.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import fsspec

from marin_resources.storage import fault_points
from marin_resources.storage.disk import open_on_disk
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.paths import is_local
from marin_resources.storage.upload.upload import upload

REQUESTS_AT_ONCE = 32
"""To a bucket, about one folder."""
HELD_IN_MEMORY_BYTES = 8 * 1024**2
"""Of a file that is on its way to a bucket; a longer one waits in the system's temporary folder."""


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
    found = (name for name in _find(fs, root) if name.endswith(suffix) and not _is_hidden(name[len(root) :]))
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


def stored_files(path: str, *, hidden: bool = False) -> list[StoredFile]:
    """Every data file below `path`, or `path` itself if it is a file; sorted by name, control files only if `hidden`.

    Raises FileNotFoundError if there is nothing at `path`.
    """
    fs, root = filesystem_of(path)
    found = _find(fs, root)
    if not found and not fs.exists(root):
        raise FileNotFoundError(f"There is nothing at {path!r}.")
    files = []
    for stored, info in found.items():
        name = stored[len(root) :].strip("/") or stored.rpartition("/")[2]
        if hidden or not _is_hidden(name):
            spelled = fs.unstrip_protocol(stored) if "://" in path else stored
            files.append(StoredFile(path=spelled, name=name, size_bytes=info["size"] or 0, stamp=_stamp(info)))
    return sorted(files, key=lambda file: file.name)


def sizes_below(path: str) -> dict[str, int]:
    """Name below `path` -> bytes, of every file there, control files too; empty if there is nothing."""
    fs, root = filesystem_of(path)
    return {stored[len(root) :].strip("/"): info["size"] or 0 for stored, info in _find(fs, root).items()}


def _find(fs: fsspec.AbstractFileSystem, root: str) -> dict[str, dict[str, Any]]:
    """What is told of each file below, by its name. Empty objects that stand for a folder are no files."""
    return {name: info for name, info in fs.find(root, detail=True).items() if not name.endswith("/")}


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    fs, p = filesystem_of(path)
    with suppress(FileNotFoundError):
        fs.rm_file(p)


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it. Raises FileNotFoundError if it is not there."""
    fs, root = filesystem_of(path)
    if is_local(path):
        fs.rm(root, recursive=True)
    else:
        _remove_objects(fs, _objects_below(fs, path))


def move(path: str, target: str) -> None:
    """Give a file or a folder another place in its store. Raises FileNotFoundError if there is nothing at `path`.

    In a bucket all is copied, by the store itself, and then removed: a move that is cut short leaves all where it was,
    and the next one goes on with it. On a disk nothing may be at `target`.
    """
    (fs, root), (_, aim) = filesystem_of(path), filesystem_of(target)
    if is_local(path):
        fs.makedirs(os.path.dirname(aim), exist_ok=True)
        if os.path.exists(aim):
            raise FileExistsError(f"{path!r} cannot be moved to {target!r}, something is there. Move that away first.")
        os.rename(root, aim)
        return
    names = _objects_below(fs, path)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(lambda name: fs.cp_file(name, aim.rstrip("/") + name[len(root.rstrip("/")) :]), _find(fs, root)))
    _remove_objects(fs, names)


def _objects_below(fs: fsspec.AbstractFileSystem, path: str) -> list[str]:
    """Also those that stand for folders."""
    names = fs.find(filesystem_of(path)[1], withdirs=False)
    if not names:
        raise FileNotFoundError(f"There is nothing at {path!r}.")
    return names


def _remove_objects(fs: fsspec.AbstractFileSystem, names: list[str]) -> None:
    """One by one, for a filesystem that is given many takes some letters of their names for wildcards."""

    def remove_one(name: str) -> None:
        with suppress(FileNotFoundError):
            fs.rm_file(name)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(remove_one, names))


def _stamp(info: dict[str, Any]) -> str:
    for key in ("generation", "ETag", "etag", "md5Hash"):
        if info.get(key):
            return str(info[key])
    if info.get("type") == "file" and isinstance(info.get("mtime"), float):
        return str(os.stat(info["name"]).st_mtime_ns) if os.path.exists(info["name"]) else str(info["mtime"])
    return str(info.get("mtime") or info.get("LastModified") or info.get("created") or "")


def size_of(path: str) -> int:
    """Bytes of a file. Raises FileNotFoundError."""
    fs, p = filesystem_of(path)
    return int(fs.size(p))


def read_from(path: str, start: int) -> bytes:
    """What a file holds from byte `start` on, empty if it is not that long. Raises FileNotFoundError."""
    fs, p = filesystem_of(path)
    size = fs.size(p)
    return fs.cat_file(p, start=start, end=size) if size > start else b""


def read_bytes(path: str) -> bytes:
    """The whole content of a file. Raises FileNotFoundError."""
    fs, p = filesystem_of(path)
    data: bytes = fs.cat_file(p)
    return data


def read_json(path: str) -> Any:
    """The JSON value in a file. Raises FileNotFoundError, and ValueError that names the file."""
    text = read_bytes(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path!r} is not JSON ({error}). Look at the file; move it aside if it is damaged."
        ) from error


def write_json(path: str, value: Any, *, replace: bool = True) -> None:
    """Write `value` as JSON, whole or not at all."""
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode(), replace=replace)


def write_bytes(path: str, data: bytes, *, replace: bool = True) -> None:
    """Write `data` to a file, whole or not at all; a reader sees the old file or the new one."""
    with open_atomic(path, replace=replace) as file:
        file.write(data)


@contextmanager
def open_atomic(path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` when the block ends well, and never if it does not.

    With `replace=False` it appears only if there is no other: FileExistsError is raised if a file with other bytes is
    there by then. One with the same bytes is taken for the file itself, whose making was not heard of.
    """
    with open_on_disk(path, replace=replace) if is_local(path) else _open_in_bucket(path, replace) as file:
        yield file


@contextmanager
def _open_in_bucket(path: str, replace: bool) -> Iterator[IO[bytes]]:
    """What is written waits on this machine: stores lose the reason of a failure, or an upload, when they are fed."""
    with tempfile.SpooledTemporaryFile(max_size=HELD_IN_MEMORY_BYTES) as spool:
        yield spool
        fault_points.reach("file written aside")
        upload(path, spool, replace=replace)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))
