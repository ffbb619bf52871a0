"""The log of an attempt: everything that a worker's process and its children print, in one file beside the output.

Writing is done by pointing the process's own stdout and stderr at the file, so that what C libraries and child
processes print arrives too. Reading follows the file while it grows. If the output is in a bucket, the file is on the
worker's machine, and its copy in the bucket follows (`log_spool.py`).
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from marin_resources.ray_tpu.log_spool import LogUploader, spool_of
from marin_resources.storage.files import is_local, read_from

VARIABLE = "MARIN_ATTEMPT_LOG"
"""Where shards of this attempt, in other processes, append to."""
BUCKET_POLL_S = 2.0

log = logging.getLogger(__name__)


@contextmanager
def redirect_output(path: str) -> Iterator[None]:
    """Append stdout, stderr and log records of this process to the log at `path` while the block runs.

    It is the attempt's own process: a log in a bucket is uploaded by it, also when the block fails.
    """
    if is_local(path):
        with _appending(path, path):
            yield
        return
    with LogUploader(path) as spool, _appending(spool, path):
        yield


@contextmanager
def join_output(path: str) -> Iterator[None]:
    """The same for another process of the attempt. On another machine than the attempt's own process, what is printed
    for a log in a bucket stays with Ray."""
    file = local_log(path)
    if not is_local(path) and not os.path.exists(file):
        yield
        return
    with _appending(file, path):
        yield


def local_log(path: str) -> str:
    """Where processes on this machine append to the log at `path`."""
    if is_local(path):
        return path
    return spool_of(path)


@contextmanager
def _appending(file: str, path: str) -> Iterator[None]:
    os.makedirs(os.path.dirname(file), exist_ok=True)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    _flush()
    saved = [os.dup(1), os.dup(2)]
    os.dup2(fd, 1)
    os.dup2(fd, 2)
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
        for standard, old in zip((1, 2), saved, strict=True):
            os.dup2(old, standard)
            os.close(old)
        os.close(fd)


class LogFollower:
    """Gives each new line of a growing log to `on_line`. A log that is not there yet has no lines.

    A log in a bucket is read where it is written, if that is this machine, and else from the bucket, every 2 s at most.
    """

    def __init__(self, path: str, on_line: Callable[[str], None]) -> None:
        self.path, self._on_line, self._offset, self._rest = path, on_line, 0, b""
        self._file, self._read_at_s = local_log(path), -BUCKET_POLL_S

    def poll(self) -> None:
        """Pass on the lines that have come since the last call."""
        self._pass_on(wait=True)

    def finish(self) -> None:
        """Pass on what is left, also a last line without an end."""
        self._pass_on(wait=False)
        if self._rest:
            self._on_line(_visible(self._rest))
            self._rest = b""

    def _pass_on(self, *, wait: bool) -> None:
        try:
            with open(self._file, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            data = b"" if is_local(self.path) else self._from_bucket(wait)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(_visible(line))

    def _from_bucket(self, wait: bool) -> bytes:
        if wait and time.monotonic() - self._read_at_s < BUCKET_POLL_S:
            return b""
        self._read_at_s = time.monotonic()
        try:
            return read_from(self.path, self._offset)
        except FileNotFoundError:
            return b""
        except Exception as error:  # whatever a store or its client says, the step goes on, and so does its run
            log.warning("the log %s cannot be read now (%s: %s)", self.path, type(error).__name__, error)
            return b""


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
