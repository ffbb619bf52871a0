"""The log of an attempt: everything that a worker's process and its children print, in one file beside the output.

Writing is done by pointing the process's own stdout and stderr at the file, so that what C libraries and child
processes print arrives too. Reading follows the file while it grows.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

VARIABLE = "MARIN_ATTEMPT_LOG"
"""Where shards of this attempt, in other processes, append to."""


@contextmanager
def redirect_output(path: str) -> Iterator[None]:
    """Append stdout, stderr and log records of this process to the file at `path` while the block runs."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    _flush()
    saved = [os.dup(1), os.dup(2)]
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ[VARIABLE] = path
    root, stream = logging.getLogger(), os.fdopen(os.dup(2), "w", buffering=1)
    level, handler = root.level, _handler(stream)
    root.addHandler(handler)
    root.setLevel(min(level or logging.WARNING, logging.INFO))
    try:
        yield
    finally:
        _flush()
        root.removeHandler(handler)
        root.setLevel(level)
        stream.close()
        del os.environ[VARIABLE]
        for fd, old in zip((1, 2), saved, strict=True):
            os.dup2(old, fd)
            os.close(old)
        os.close(log)


class LogFollower:
    """Gives each new line of a growing file to `on_line`. A file that is not there yet has no lines."""

    def __init__(self, path: str, on_line: Callable[[str], None]) -> None:
        self.path, self._on_line, self._offset, self._rest = path, on_line, 0, b""

    def poll(self) -> None:
        """Pass on the lines that have come since the last call."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(_visible(line))

    def finish(self) -> None:
        """Pass on what is left, also a last line without an end."""
        self.poll()
        if self._rest:
            self._on_line(_visible(self._rest))
            self._rest = b""


def _visible(line: bytes) -> str:
    """What a terminal would show of a line that a progress bar has written over."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    return handler
