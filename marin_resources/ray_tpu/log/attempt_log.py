"""The log of an attempt: everything that a worker's process and its children print, in one file beside the output.

Writing is done by pointing the process's own stdout and stderr at the file, so that what C libraries and child
processes print arrives too. Where secrets have to be hidden, or a job shows the same lines, a process between them does
that (`pump_process.py`). Reading follows the file while it grows. If the output is in a bucket, the file is on the
worker's machine, and its copy in the bucket follows (`log_spool.py`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext

from marin_resources.ray_tpu.log.lines import last_state
from marin_resources.ray_tpu.log.process_output import output_into
from marin_resources.ray_tpu.log.pump_process import Pump
from marin_resources.ray_tpu.log.spool import LogUploader, spool_of
from marin_resources.storage.files import read_from
from marin_resources.storage.paths import is_local

VARIABLE = "MARIN_ATTEMPT_LOG"
"""Where shards of this attempt, in other processes, append to."""
PUMPED_VARIABLE = "MARIN_ATTEMPT_LOG_PUMPED"
MARKER_END = " ---"
BUCKET_POLL_S = 2.0

log = logging.getLogger(__name__)


@contextmanager
def redirect_output(path: str, *, secrets: Collection[str] = (), tee: bool = False) -> Iterator[None]:
    """Append stdout, stderr and log records of this process to the log at `path` while the block runs.

    It is the attempt's own process: a log in a bucket is uploaded by it, also when the block fails. `secrets` are
    values to hide. With `tee` this process's stdout, a job's, gets a line that says so, and then all of the log, byte
    for byte; what shards of the attempt print has to go through a pump then (`is_pumped`).
    """
    pumped, first_line = bool(secrets) or tee, marker(path) if tee else ""
    with (
        nullcontext(path) if is_local(path) else LogUploader(path) as file,
        _appending(file, path, secrets, pumped=pumped, tee=tee, first_line=first_line),
    ):
        yield


@contextmanager
def join_output(path: str, *, secrets: Collection[str] = (), pumped: bool = False) -> Iterator[None]:
    """The same for another process of the attempt; `pumped` is what `is_pumped` says in the attempt's own. On another
    machine than that one's, what is printed for a log in a bucket stays with Ray, without secrets."""
    file: str | None = local_log(path)
    if not is_local(path) and not os.path.exists(local_log(path)):
        file = None
    if file is None and not secrets:
        yield
        return
    with _appending(file, path, secrets, pumped=bool(secrets) or pumped, tee=file is None):
        yield


def marker(path: str) -> str:
    """The line in a job's stdout after which it is the same, byte for byte, as the log at `path`."""
    return f"{marker_start(int(os.path.basename(path).removesuffix('.log')))}{path}{MARKER_END}"


def marker_start(attempt: int) -> str:
    return f"--- marin: attempt {attempt}, its log is "


def is_pumped() -> bool:
    """Whether what this process prints into the log of an attempt goes through a pump."""
    return PUMPED_VARIABLE in os.environ


def local_log(path: str) -> str:
    """Where processes on this machine append to the log at `path`."""
    if is_local(path):
        return path
    return spool_of(path)


@contextmanager
def _appending(
    file: str | None, path: str, secrets: Collection[str], *, pumped: bool, tee: bool, first_line: str = ""
) -> Iterator[None]:
    if file is not None:
        os.makedirs(os.path.dirname(file), exist_ok=True)
    if file is not None and not pumped:
        with _opened(file) as fd, output_into(fd, {VARIABLE: path}):
            yield
        return
    pump = Pump(file, tee=tee)
    try:
        with output_into(pump.fd, {VARIABLE: path, PUMPED_VARIABLE: "1"}):
            pump.begin(secrets, first_line)
            yield
    finally:
        pump.close()


@contextmanager
def _opened(file: str) -> Iterator[int]:
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


class LogReader:
    """What is new in a growing log. A log that is not there yet is empty.

    A log in a bucket is read where it is written, if that is this machine, and else from the bucket, every 2 s at most.
    """

    def __init__(self, path: str) -> None:
        self.path, self._file, self._read_at_s = path, local_log(path), -BUCKET_POLL_S

    def read(self, start: int, *, wait: bool) -> bytes:
        """From byte `start` on. With `wait` a bucket is left alone until 2 s are over."""
        try:
            with open(self._file, "rb") as file:
                file.seek(start)
                return file.read()
        except FileNotFoundError:
            return b"" if is_local(self.path) else self._from_bucket(start, wait)

    def _from_bucket(self, start: int, wait: bool) -> bytes:
        if wait and time.monotonic() - self._read_at_s < BUCKET_POLL_S:
            return b""
        self._read_at_s = time.monotonic()
        try:
            return read_from(self.path, start)
        except FileNotFoundError:
            return b""
        except Exception as error:  # whatever a store or its client says, the step goes on, and so does its run
            log.warning("the log %s cannot be read now (%s: %s)", self.path, type(error).__name__, error)
            return b""


class LogFollower:
    """Gives each new line of a growing log to `on_line`."""

    def __init__(self, path: str, on_line: Callable[[str], None]) -> None:
        self.path, self._on_line, self._offset, self._rest = path, on_line, 0, b""
        self._reader = LogReader(path)

    def poll(self) -> None:
        """Pass on the lines that have come since the last call."""
        self._pass_on(wait=True)

    def finish(self) -> None:
        """Pass on what is left, also a last line without an end."""
        self._pass_on(wait=False)
        if self._rest:
            self._on_line(visible(self._rest))
            self._rest = b""

    def _pass_on(self, *, wait: bool) -> None:
        data = self._reader.read(self._offset, wait=wait)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(visible(line))


def visible(line: bytes) -> str:
    """What a terminal would show of a line that a progress bar has written over."""
    return last_state(line).decode(errors="replace")
