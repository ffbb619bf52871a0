"""Write a file on a local disk, whole or not at all."""

from __future__ import annotations

import filecmp
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from marin_resources.storage import fault_points
from marin_resources.storage.paths import absolute

TEMPORARY_SUFFIX = ".tmp"
"""Suffix of a hidden file while it is written."""


def already_exists(path: str) -> FileExistsError:
    """The error for a file that was to be created and already exists with other bytes, on any store."""
    return FileExistsError(
        f"{path!r} already exists with other bytes. Another process works on the same output; find it, or run again "
        "when it is done."
    )


def write_on_disk(path: str, data: bytes) -> None:
    """Write `data` to a file on this machine's disk, whole or not at all."""
    with open_on_disk(path) as file:
        file.write(data)


@contextmanager
def open_on_disk(path: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file on a local disk. It appears at `path` if the block succeeds: see `files.open_atomic`."""
    place = absolute(path)
    folder, name = os.path.split(place)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY_SUFFIX}")
    try:
        with open(temporary, "wb") as file:
            yield file
            fault_points.reach("file half written")
            file.flush()
            os.fsync(file.fileno())
        fault_points.reach("file written aside")
        os.replace(temporary, place) if replace else _create(temporary, place)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _create(temporary: str, path: str) -> None:
    """Give a finished file its name, if no other file has it. Raises FileExistsError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        if filecmp.cmp(temporary, path, shallow=False):
            return
        raise already_exists(path) from None
