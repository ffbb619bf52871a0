"""Watch the files that one request reads: their places, their bytes, and the time.

In:  a watch for the current thread, or coroutine.   Out: every file that `storage/files.py` opens goes through it.

A server that shows files of a prefix to people limits each request in this way, whatever reader of a library does the
reading. A path is checked before it is opened, and a link may be put in its place between the two. So the watch checks
at the place of the descriptor that is open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, Protocol, cast

DESCRIPTORS = "/proc/self/fd"
"""The folder in which Linux has the place of each open file. Elsewhere the path itself is checked."""


class Watch(Protocol):
    """The rules of one request. Both methods raise an error of the request to end its reading."""

    def opened(self, place: str) -> None:
        """A local file is open, at this place without links."""

    def read(self, count: int) -> None:
        """So many bytes were read; 0 before a read."""


_WATCH: ContextVar[Watch | None] = ContextVar("watch of reads", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Watch all files that are opened in the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def watched(file: IO[bytes], local_path: str | None) -> IO[bytes]:
    """The file, watched if a watch is set. `local_path` is None for a file in a bucket. Raises the watch's errors."""
    watch = _WATCH.get()
    if watch is None:
        return file
    try:
        if local_path is not None:
            watch.opened(place_of_open(file, local_path))
        watch.read(0)
    except BaseException:  # also one that ends a thread: the file must not stay open
        file.close()
        raise
    return cast(IO[bytes], _WatchedFile(file, watch))


def count_read(data: bytes) -> bytes:
    """These bytes, which were read by one request, counted by the watch if one is set; without bytes only its time is
    checked. Raises the watch's errors."""
    watch = _WATCH.get()
    if watch is not None:
        watch.read(len(data))
    return data


def place_of_open(file: IO[bytes], path: str) -> str:
    """The place, without links, of a local file that is open; of a file without a descriptor that of its path."""
    try:
        return os.readlink(f"{DESCRIPTORS}/{file.fileno()}")
    except (OSError, AttributeError):
        return os.path.realpath(path)


class _WatchedFile:
    """A file whose reads are counted. All else is that of the file."""

    def __init__(self, file: IO[bytes], watch: Watch) -> None:
        self._file, self._watch = file, watch

    def read(self, size: int = -1) -> bytes:
        self._watch.read(0)
        data = self._file.read(size)
        self._watch.read(len(data))
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def __enter__(self) -> _WatchedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
