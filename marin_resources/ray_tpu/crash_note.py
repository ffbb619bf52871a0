"""The last note of a worker's process that crashes, by which two crashes are known as the same one.

In:  a name, in the process of a Ray task: of the attempt, or of a try on a host.
Out: a file on this machine with the last step that the function has reported, and, if a signal of the processor or
     `os._exit` ended the process, with the call that it was in. A process that was killed has written none: neither a
     lack of memory nor a stop looks like a crash.

Ray (2.60) reports neither the signal nor the exit code of a worker.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import logging
import os
import re
import stat
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from marin_resources.step_api.progress import Unheard

HEADER_BYTES = 32
"""Length of the first line, which has the step; it is overwritten in place, and the rest follows it."""
SIGNALS = {
    "Segmentation fault": "signal 11 (SIGSEGV)",
    "Aborted": "signal 6 (SIGABRT)",
    "Bus error": "signal 7 (SIGBUS)",
    "Floating point exception": "signal 8 (SIGFPE)",
    "Illegal instruction": "signal 4 (SIGILL)",
}
"""Python's names of the signals that its faulthandler notes."""
FATAL = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
EXIT = re.compile(r"^(os\._exit\(.*\))$", re.MULTILINE)
FRAME = re.compile(r'^  File "(.+)", line (\d+),? in (.+)$', re.MULTILINE)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Crash:
    """The end of a process by its own fault."""

    phrase: str
    """"its process died by signal 11 (SIGSEGV) in f, x.py line 3, after step 7". Equal ones are the same crash."""
    text: str
    """The stack, for the log."""


class _Steps(Unheard):
    """Notes each step, in a microsecond."""

    def __init__(self, file: int) -> None:
        self._file = file

    def resumed(self, step: int | None) -> None:
        if step is not None:
            self.stepped(step)

    def stepped(self, step: int) -> None:
        os.pwrite(self._file, _header(step), 0)


@contextlib.contextmanager
def crash_noted(name: str) -> Iterator[Unheard]:
    """Note a crash of this process while the block runs, under this name. The value listens to the function's steps.

    Where no note can be written, that is logged: the function runs, and a crash of it has no known place.
    """
    try:
        path = _path(name)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(file, _header(None))
    except OSError as error:
        log.warning("a crash of this process would not be noted: %s", error)
        yield Unheard()
        return
    before, process = os._exit, os.getpid()

    def noted_exit(code: int) -> NoReturn:
        if os.getpid() == process:  # a child that was forked ends so too
            text = f"os._exit({code})\n" + "".join(reversed(traceback.format_stack(sys._getframe(1))))
            os.write(file, text.encode())
        before(code)

    faulthandler.enable(file, all_threads=False)
    _replace_exit(noted_exit)
    try:
        yield _Steps(file)
    finally:
        _replace_exit(before)
        faulthandler.enable(2, all_threads=False)  # as Ray does
        os.close(file)
        if os.getpid() == process:  # not a child that was forked and leaves the block too
            with contextlib.suppress(FileNotFoundError):  # somebody cleans the temporary folder
                os.unlink(path)


def crash_name(output_path: str, attempt: int) -> str:
    """The name of the note of an attempt whose function runs in its own process."""
    return f"{output_path}#{attempt}"


def take_crash(name: str) -> Crash | None:
    """The crash that a process of this machine noted under this name, which has ended; None if it noted none. Removes
    the note."""
    path = _path(name)
    try:
        with open(path, errors="replace") as file:
            noted = file.read()
    except FileNotFoundError:
        return None
    os.unlink(path)
    step, text = noted[:HEADER_BYTES].removeprefix("step ").strip(), noted[HEADER_BYTES:]
    if fatal := FATAL.search(text):
        how = SIGNALS.get(fatal[1], f"the fatal error {fatal[1]!r}")
    elif called := EXIT.search(text):
        how = called[1]
    else:
        return None
    frame = FRAME.search(text)
    place = f" in {frame[3]}, {os.path.basename(frame[1])} line {frame[2]}" if frame else ""
    after = f", after step {step}" if step != "none" else ""
    return Crash(phrase=f"its process died by {how}{place}{after}", text=text)


def _replace_exit(function: Any) -> None:
    os._exit = function


def _header(step: int | None) -> bytes:
    return f"step {'none' if step is None else step}".ljust(HEADER_BYTES - 1).encode() + b"\n"


def _path(name: str) -> str:
    """The file of a note, in a folder of this user. Raises OSError if another user has that."""
    folder = os.path.join(tempfile.gettempdir(), f"marin-crashes-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{folder!r} is not a folder of this user")
    return os.path.join(folder, hashlib.sha256(name.encode()).hexdigest()[:32])
