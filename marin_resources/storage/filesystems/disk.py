"""Write a file on a local disk, whole or not at all."""

from __future__ import annotations

import fcntl
import filecmp
import os
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from marin_resources.storage import fault_points
from marin_resources.storage.filesystems.rights import no_right
from marin_resources.storage.filesystems.sharing import make_folders, share_file
from marin_resources.storage.paths import absolute
from marin_resources.storage.watched_reads import watched

TEMPORARY_SUFFIX = ".tmp"
"""Suffix of a hidden file while it is written."""
NEW_S = 60.0
"""An empty temporary that is younger may not be locked yet."""


def describe_type(mode: int) -> str:
    """The type of a file that is not a regular one, as a phrase, from its `st_mode`."""
    return next((phrase for is_one, phrase in _TYPES if is_one(mode)), "of an unknown type")


def already_exists(path: str) -> FileExistsError:
    """The error for a file that was to be created and already exists with other bytes, on any store."""
    return FileExistsError(
        f"{path!r} already exists with other bytes. Another process works on the same output; find it, or run again "
        "when it is done."
    )


def read_on_disk(path: str) -> bytes:
    """The whole content of a file at a local path. Raises FileNotFoundError."""
    with watched(open(path, "rb"), path) as file:
        return file.read()


def write_on_disk(path: str, data: bytes) -> None:
    """Write `data` to a file on this machine's disk, whole or not at all."""
    with open_on_disk(path) as file:
        file.write(data)


@contextmanager
def open_on_disk(path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file on a local disk. It appears at `path` if the block succeeds: see `files.open_atomic`."""
    place = absolute(path)
    with temporary_beside(place) as file:
        yield file
        fault_points.reach("file half written")
        file.flush()
        os.fsync(file.fileno())
        fault_points.reach("file written aside")
        os.replace(file.name, place) if replace else _create(file.name, place)


@contextmanager
def temporary_beside(path: str) -> Iterator[IO[bytes]]:
    """Open a hidden file in the folder of `path`, which may be renamed to it. If it still exists then, it is removed.

    Its process holds a lock on it, so that another one can recognize the temporary of a dead process. Raises
    NoRightError if this user may not create it.
    """
    folder, name = os.path.split(path)
    shared = make_folders(folder)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY_SUFFIX}")
    try:
        with _created(temporary) as file:
            if shared:
                share_file(file.fileno())
            # `remove_dead_temporaries` of another process may hold the lock of a new file while it looks at it.
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _created(path: str) -> IO[bytes]:
    """Raises NoRightError."""
    try:
        return open(path, "wb")
    except OSError as error:
        raise no_right(path, error) from error


def remove_dead_temporaries(folder: str) -> None:
    """Remove the temporaries in a folder, not below it, whose processes are gone."""
    for entry in os.scandir(folder):
        if not (entry.name.startswith(".") and entry.name.endswith(TEMPORARY_SUFFIX) and entry.is_file()):
            continue
        with suppress(FileNotFoundError, BlockingIOError), open(entry.path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state = os.fstat(file.fileno())
            if state.st_size or time.time() - state.st_mtime > NEW_S:
                os.unlink(entry.path)


def _create(temporary: str, path: str) -> None:
    """Give a finished file its name, if no other file has it. Raises FileExistsError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        if filecmp.cmp(temporary, path, shallow=False):
            return
        raise already_exists(path) from None


_TYPES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO (a named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISBLK(mode) or stat.S_ISCHR(mode), "a device"),
)
