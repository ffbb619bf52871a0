"""Files on any store: list, read, move and remove them, and write them whole or not at all.

A path is a plain URL string ("gs://bucket/a/b") or a local path. Names that begin with a dot are
control files (status, record, lease, attempts) and are never data.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from marin_resources.storage import fault_points
from marin_resources.storage.filesystems.disk import open_on_disk, read_on_disk
from marin_resources.storage.filesystems.disk_listing import OnError, data_files, raise_error, require_file
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.filesystems.sharing import make_folders
from marin_resources.storage.paths import absolute, is_local
from marin_resources.storage.upload.upload import upload
from marin_resources.storage.watched_reads import count_read, watched
from marin_resources.types.output import below

if TYPE_CHECKING:
    import fsspec

REQUESTS_AT_ONCE = 32
"""Concurrent requests to a bucket for the objects of one folder."""
HELD_IN_MEMORY_BYTES = 8 * 1024**2
"""Size limit of a file that is uploaded from memory; a larger one is spooled to the system's temporary folder."""


def exists(path: str) -> bool:
    if is_local(path):
        return os.path.exists(absolute(path))
    fs, p = filesystem_of(path)
    return bool(fs.exists(p))


def find_below(name: str, prefixes: Sequence[str]) -> str | None:
    """The path of `name`, which may be absolute, below the first of the prefixes that has it; None if none has."""
    return next((path for prefix in prefixes if exists(path := below(prefix, name))), None)


def list_files(path: str, suffix: str = "") -> list[str]:
    """List every data file below `path`, or `path` itself if it is a file; sorted, without control files.

    Errors and symlinks are as in `stored_files`.
    """
    fs, root = filesystem_of(path)
    if fs.isfile(root):
        return [path]
    return sorted(file.path for file in stored_files(path) if file.path.endswith(suffix))


def names_in(path: str, starting: str = "") -> list[str]:
    """The names of the files and folders directly in a folder, in no order; none if it does not exist.

    `starting`: only names that start so; they alone are requested from a bucket.
    """
    try:
        if is_local(path):
            return [name for name in os.listdir(absolute(path)) if name.startswith(starting)]
        fs, root = filesystem_of(path)
        if starting:
            below = (name[len(root) + 1 :] for name in fs.find(root, prefix=starting))
            return [name for name in below if name.startswith(starting) and "/" not in name]
        return [name.rstrip("/").rpartition("/")[2] for name in fs.ls(root, detail=False) if name.rstrip("/") != root]
    except (FileNotFoundError, NotADirectoryError):
        return []


def names_below(path: str) -> list[str]:
    """The paths below a folder of all files in it, in no order, by one listing; none if it does not exist."""
    if is_local(path):
        return list(_names_on_disk(absolute(path), ""))
    fs, root = filesystem_of(path)
    return [name[len(root) :].strip("/") for name in fs.find(root) if not name.endswith("/")]


def _names_on_disk(folder: str, before: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as scan:
            entries = list(scan)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _names_on_disk(entry.path, f"{before}{entry.name}/")
        else:
            yield f"{before}{entry.name}"


def folders_in(path: str) -> list[str]:
    """The names of the folders directly in a folder, in no order, by one listing; none if it does not exist."""
    try:
        if is_local(path):
            with os.scandir(absolute(path)) as entries:
                return [entry.name for entry in entries if entry.is_dir()]
        fs, root = filesystem_of(path)
        below = ((entry["name"].rstrip("/"), entry["type"]) for entry in fs.ls(root, detail=True))
        return [name.rpartition("/")[2] for name, kind in below if kind == "directory" and name != root]
    except (FileNotFoundError, NotADirectoryError):
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """A file as its store lists it."""

    path: str
    name: str
    """Path of the file below the listed folder."""
    size_bytes: int
    stamp: str
    """Changes with the file: its generation or entity tag, on a disk the time of its last change in ns."""


def stored_files(path: str, *, hidden: bool = False) -> list[StoredFile]:
    """List every data file below `path`, or `path` itself if it is a file; sorted by name.

    On a disk, symlinks to folders are followed. Control files are listed only if `hidden`, and then no link to a folder
    is followed. Raises FileNotFoundError if nothing exists at `path`, SpecialFileError for a FIFO, socket or device.
    """
    return _stored_files(path, raise_error, hidden=hidden)


def stored_and_unusable_files(path: str) -> tuple[list[StoredFile], dict[str, OSError]]:
    """As `stored_files`; and on a disk, by its name below `path`, what cannot be read as a file or a folder.

    Raises FileNotFoundError if nothing exists at `path`, OSError if `path` itself cannot be read.
    """
    unusable: dict[str, OSError] = {}
    _, root = filesystem_of(path)

    def note(place: str, error: OSError) -> None:
        if place == root:
            raise error
        unusable[place[len(root) :].strip("/")] = error

    return _stored_files(path, note), unusable


def _stored_files(path: str, on_error: OnError, *, hidden: bool = False) -> list[StoredFile]:
    fs, root = filesystem_of(path)
    if is_local(path) and not hidden:
        listed: Iterable[tuple[str, int, str]] = _on_disk(path, root, on_error)
    else:
        listed = ((stored, info["size"] or 0, _stamp(info)) for stored, info in _find(fs, root).items())
    files = []
    for stored, size_bytes, stamp in listed:
        name = stored[len(root) :].strip("/") or stored.rpartition("/")[2]
        if hidden or not _is_hidden(name):
            spelled = fs.unstrip_protocol(stored) if "://" in path else stored
            files.append(StoredFile(path=spelled, name=name, size_bytes=size_bytes, stamp=stamp))
    if not files and not fs.exists(root):
        raise _nothing_at(path)
    return sorted(files, key=lambda file: file.name)


def stored_file(path: str) -> StoredFile:
    """Return a file as its store has it now, by one request. Raises FileNotFoundError and SpecialFileError."""
    fs, p = filesystem_of(path)
    name = p.rpartition("/")[2]
    if is_local(path):
        state = os.stat(p)
        require_file(path, state)
        return StoredFile(path=path, name=name, size_bytes=state.st_size, stamp=str(state.st_mtime_ns))
    info = fs.info(p)
    return StoredFile(path=path, name=name, size_bytes=info["size"] or 0, stamp=_stamp(info))


def _on_disk(path: str, root: str, on_error: OnError) -> Iterator[tuple[str, int, str]]:
    if not os.path.exists(root):
        raise _nothing_at(path)
    for stored, state in data_files(root, on_error):
        yield stored, state.st_size, str(state.st_mtime_ns)


def _nothing_at(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"Nothing exists at {path!r}.")


def sizes_below(path: str) -> dict[str, int]:
    """Name below `path` -> bytes, of every file there including control files; empty if nothing exists."""
    fs, root = filesystem_of(path)
    return {stored[len(root) :].strip("/"): info["size"] or 0 for stored, info in _find(fs, root).items()}


def _find(fs: fsspec.AbstractFileSystem, root: str) -> dict[str, dict[str, Any]]:
    """Path -> info of each file below. Empty objects that represent a folder are left out."""
    return {name: info for name, info in fs.find(root, detail=True).items() if not name.endswith("/")}


def open_to_read(path: str, *, block_bytes: int | None = None) -> IO[bytes]:
    """Open a file as a stream of bytes. Raises FileNotFoundError and SpecialFileError.

    `block_bytes`: bytes that one request to a bucket reads ahead, by default those of the store's client, 5 MiB; 0 to
    request what is read, and no more.
    """
    fs, p = filesystem_of(path)
    if is_local(path):
        require_file(path, os.stat(p))
    options: dict[str, Any] = {"cache_type": "none"} if block_bytes == 0 else {"block_size": block_bytes}
    file: IO[bytes] = fs.open(p, "rb", **options)
    return watched(file, p if is_local(path) else None)


def remove(path: str) -> None:
    """Remove a file, if it exists."""
    fs, p = filesystem_of(path)
    with suppress(FileNotFoundError):
        fs.rm_file(p)


def remove_folder(path: str) -> None:
    """Remove a folder and everything in it. Raises FileNotFoundError."""
    fs, root = filesystem_of(path)
    if is_local(path):
        fs.rm(root, recursive=True)
    else:
        _remove_objects(fs, _objects_below(fs, path))


def move(path: str, target: str) -> None:
    """Move a file or a folder to another path in its store. Raises FileNotFoundError if nothing exists at `path`.

    In a bucket the store copies every object first, then they are removed: an interrupted copy leaves all of them
    at `path`, and the next move completes it. On a disk nothing may exist at `target`.
    """
    (fs, root), (_, aim) = filesystem_of(path), filesystem_of(target)
    if is_local(path):
        make_folders(os.path.dirname(aim))
        if os.path.exists(aim):
            raise FileExistsError(f"{path!r} cannot be moved to {target!r}, which already exists. Move that one first.")
        os.rename(root, aim)
        return
    names = _objects_below(fs, path)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(lambda name: fs.cp_file(name, aim.rstrip("/") + name[len(root.rstrip("/")) :]), _find(fs, root)))
    _remove_objects(fs, names)


def _objects_below(fs: fsspec.AbstractFileSystem, path: str) -> list[str]:
    """Every object below `path`, including the empty ones that represent folders. Raises FileNotFoundError."""
    names = fs.find(filesystem_of(path)[1], withdirs=False)
    if not names:
        raise FileNotFoundError(f"Nothing exists at {path!r}.")
    return names


def _remove_objects(fs: fsspec.AbstractFileSystem, names: list[str]) -> None:
    """One by one: given a list, a filesystem reads some characters of the names as wildcards."""

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


def changed_at(path: str) -> datetime | None:
    """The time when a file was written last, by the clock of its store; None if nothing exists there."""
    fs, p = filesystem_of(path)
    try:
        modified: datetime = fs.modified(p)
    except FileNotFoundError:
        return None
    return modified if modified.tzinfo is not None else modified.replace(tzinfo=UTC)


def read_from(path: str, start: int) -> bytes:
    """The bytes of a file from offset `start` on; empty if the file is shorter. Raises FileNotFoundError."""
    fs, p = filesystem_of(path)
    size = fs.size(p)
    return fs.cat_file(p, start=start, end=size) if size > start else b""


def read_range(path: str, start: int, end: int) -> bytes:
    """The bytes of a file from offset `start` to before `end`, by one request; fewer if the file is shorter.

    Raises FileNotFoundError.
    """
    if end <= start:
        return b""
    fs, p = filesystem_of(path)
    if not is_local(path):
        return count_read(fs.cat_file(p, start=start, end=end))
    with watched(open(p, "rb"), p) as file:
        file.seek(start)
        return file.read(end - start)


def read_bytes(path: str) -> bytes:
    """The whole content of a file. Raises FileNotFoundError and SpecialFileError."""
    if is_local(path):
        require_file(path, os.stat(place := absolute(path)))
        return read_on_disk(place)
    fs, p = filesystem_of(path)
    data: bytes = fs.cat_file(p)
    return data


def read_json(path: str) -> Any:
    """The JSON value in a file. Raises FileNotFoundError, and ValueError with the path."""
    text = read_bytes(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also bytes that are no text, and 100,000 levels of nesting
        raise ValueError(
            f"{path!r} is not JSON ({error}). Look at the file; move it aside if it is damaged."
        ) from error


def write_json(path: str, value: Any, *, replace: bool = True) -> None:
    """Write `value` as JSON, whole or not at all."""
    write_bytes(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode(), replace=replace)


def write_bytes(path: str, data: bytes | bytearray, *, replace: bool = True) -> None:
    """Write `data` to a file, whole or not at all; a reader sees either the old file or the new one."""
    with open_atomic(path, replace=replace) as file:
        file.write(data)


@contextmanager
def open_atomic(path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file for writing. It appears at `path` if the block succeeds, and never if it fails.

    With `replace=False` it raises FileExistsError if a file with other bytes exists by then. A file with the same
    bytes counts as this one: an earlier try may have written it and lost the response.
    """
    with open_on_disk(path, replace=replace) if is_local(path) else _open_in_bucket(path, replace) as file:
        yield file


@contextmanager
def _open_in_bucket(path: str, replace: bool) -> Iterator[IO[bytes]]:
    """Spool on this machine first: the stores' own streaming writers lose the reason of a failure, or the upload."""
    with tempfile.SpooledTemporaryFile(max_size=HELD_IN_MEMORY_BYTES) as spool:
        yield spool
        fault_points.reach("file written aside")
        upload(path, spool, replace=replace)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))
