"""The log of an attempt: everything that the worker's process and its children print, in one file beside the output.

The process's own stdout and stderr are redirected to the file, so output of C libraries and child processes arrives
too. If secrets must be hidden, or a job prints the same lines, a separate process writes the file (`pump_process.py`).
The reader follows the file while it grows. If the output is in a bucket, the file is on the worker's machine and is
uploaded to the bucket (`spool.py`).
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TextIO

from marin_resources.ray_tpu.log.lines import last_state
from marin_resources.ray_tpu.log.pump_process import Pump
from marin_resources.ray_tpu.log.spool import LogUploader, spool_of
from marin_resources.storage.files import read_from
from marin_resources.storage.filesystems.sharing import make_folders
from marin_resources.storage.paths import is_local

VARIABLE = "MARIN_ATTEMPT_LOG"
"""Path of the log, to which shards of this attempt in other processes append."""
PUMPED_VARIABLE = "MARIN_ATTEMPT_LOG_PUMPED"
MARKER_END = " ---"
BUCKET_POLL_S = 2.0

log = logging.getLogger(__name__)


@contextmanager
def redirect_output(path: str, *, secrets: Collection[str] = (), tee: bool = False) -> Iterator[None]:
    """Append stdout, stderr and log records of this process to the log at `path` while the block runs.

    Call it in the attempt's own process: this process uploads a log in a bucket, also when the block fails. `secrets`
    are values to hide. With `tee` this process's stdout, a job's, gets the marker line and then all of the log, byte
    for byte; shards of the attempt must then print through a pump too (`is_pumped`).
    """
    pumped, first_line = bool(secrets) or tee, marker(path) if tee else ""
    with (
        nullcontext(path) if is_local(path) else LogUploader(path) as file,
        _append_output(file, path, secrets, pumped=pumped, tee=tee, first_line=first_line),
    ):
        yield


@contextmanager
def join_output(path: str, *, secrets: Collection[str] = (), pumped: bool = False) -> Iterator[None]:
    """Do the same in another process of the attempt. `pumped` is the value of `is_pumped` in the attempt's own process.

    If the log is in a bucket and its spool is on another machine, the output stays with Ray, with secrets hidden.
    """
    file: str | None = local_log(path)
    if not is_local(path) and not os.path.exists(local_log(path)):
        file = None
    if file is None and not secrets:
        yield
        return
    with _append_output(file, path, secrets, pumped=bool(secrets) or pumped, tee=file is None):
        yield


def marker(path: str) -> str:
    """Return the line in a job's stdout after which the stdout equals the log at `path`, byte for byte."""
    return f"{marker_start(int(os.path.basename(path).removesuffix('.log')))}{path}{MARKER_END}"


def marker_start(attempt: int) -> str:
    return f"--- marin: attempt {attempt}, its log is "


def is_pumped() -> bool:
    """Whether this process prints into the log of an attempt through a pump."""
    return PUMPED_VARIABLE in os.environ


def local_log(path: str) -> str:
    """Return the file on this machine to which processes append for the log at `path`."""
    if is_local(path):
        return path
    return spool_of(path)


@contextmanager
def _append_output(
    file: str | None, path: str, secrets: Collection[str], *, pumped: bool, tee: bool, first_line: str = ""
) -> Iterator[None]:
    if file is not None:
        make_folders(os.path.dirname(file))
    if file is not None and not pumped:
        with _open_for_append(file) as fd, _redirect_process_output(fd, {VARIABLE: path}):
            yield
        return
    pump = Pump(file, tee=tee)
    try:
        with _redirect_process_output(pump.fd, {VARIABLE: path, PUMPED_VARIABLE: "1"}):
            pump.begin(secrets, first_line)
            yield
    finally:
        pump.close()


@contextmanager
def _open_for_append(file: str) -> Iterator[int]:
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        yield fd
    finally:
        os.close(fd)


class LogReader:
    """Reads the new bytes of a growing log. A log that does not exist yet is empty.

    A log in a bucket is read from its spool if that is on this machine, else from the bucket, at most every 2 s.
    """

    def __init__(self, path: str) -> None:
        self.path, self._file, self._read_at_s = path, local_log(path), -BUCKET_POLL_S

    def read(self, start: int, *, wait: bool) -> bytes:
        """Return the bytes from `start` on. With `wait`, read a bucket only if the last read was 2 s ago."""
        try:
            with open(self._file, "rb") as file:
                file.seek(start)
                return file.read()
        except (FileNotFoundError, NotADirectoryError):  # the worker reports a file in the place of a folder
            return b"" if is_local(self.path) else self._from_bucket(start, wait)

    def _from_bucket(self, start: int, wait: bool) -> bytes:
        if wait and time.monotonic() - self._read_at_s < BUCKET_POLL_S:
            return b""
        self._read_at_s = time.monotonic()
        try:
            return read_from(self.path, start)
        except FileNotFoundError:
            return b""
        except Exception as error:  # any error of a store or its client: the step and its run keep running
            log.warning("the log %s cannot be read now (%s: %s)", self.path, type(error).__name__, error)
            return b""


class LogFollower:
    """Calls `on_line` with each new line of a growing log."""

    def __init__(self, path: str, on_line: Callable[[str], None]) -> None:
        self.path, self._on_line, self._offset, self._rest = path, on_line, 0, b""
        self._reader = LogReader(path)

    def poll(self) -> None:
        """Emit the lines that were added since the last call."""
        self._emit_lines(wait=True)

    def finish(self) -> None:
        """Emit the remaining lines, also an unfinished last line."""
        self._emit_lines(wait=False)
        if self._rest:
            self._on_line(visible(self._rest))
            self._rest = b""

    def _emit_lines(self, *, wait: bool) -> None:
        data = self._reader.read(self._offset, wait=wait)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(visible(line))


def visible(line: bytes) -> str:
    """Return the text that a terminal would show for a line, which a progress bar may have overwritten."""
    return last_state(line).decode(errors="replace")


@contextmanager
def _redirect_process_output(fd: int, variables: Mapping[str, str]) -> Iterator[None]:
    """Redirect to `fd` while the block runs, also the output of C libraries and children. Set `variables` for them."""
    _flush()
    saved = [os.dup(1), os.dup(2)]
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.environ.update(variables)
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
        for variable in variables:
            del os.environ[variable]
        for standard, old in zip((1, 2), saved, strict=True):
            os.dup2(old, standard)
            os.close(old)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    return handler
