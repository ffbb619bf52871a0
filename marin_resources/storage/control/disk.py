"""Control files on a local disk: compared and replaced while holding the kernel's lock on their folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from marin_resources.storage.control.protocol import ConflictError, Snapshot
from marin_resources.storage.disk import write_on_disk
from marin_resources.storage.paths import absolute


class DiskControlFiles:
    def read(self, path: str) -> Snapshot | None:
        try:
            with open(absolute(path), "rb") as file:
                return Snapshot(file.read(), _generation(os.fstat(file.fileno())))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        place = absolute(path)
        with locked(os.path.dirname(place)):
            if _generation_at(place) != expected:
                raise ConflictError(path)
            write_on_disk(place, data)
            return _generation(os.stat(place))

    def delete(self, path: str, expected: str) -> None:
        place = absolute(path)
        with locked(os.path.dirname(place)):
            if _generation_at(place) != expected:
                raise ConflictError(path)
            os.unlink(place)


def _generation(stat: os.stat_result) -> str:
    """Each write creates a new file, so the inode changes; a reused inode has another time."""
    return f"{stat.st_ino}-{stat.st_mtime_ns}-{stat.st_size}"


def _generation_at(path: str) -> str | None:
    try:
        return _generation(os.stat(path))
    except FileNotFoundError:
        return None


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keep other processes on this machine from writing control files of the folder; create it if missing."""
    os.makedirs(folder, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
