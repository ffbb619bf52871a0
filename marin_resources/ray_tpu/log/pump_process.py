"""Start the pump of a log (`log_pump.py`), and wait for its last lines.

The pump gets the secrets through a pipe: its arguments and its environment, which others on the machine may see, hold
none, and no file does. It has a session of its own and takes no SIGTERM, SIGINT or SIGHUP, so that it is there for the
last lines of whatever is stopped, and ends when nobody is left that could print.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

import marin_resources
from marin_resources.ray_tpu.log.pump import NO_FD
from marin_resources.ray_tpu.log.redact import forms_of, printed

LAST_LINES_S = 2.0
"""So long a pump is waited for. What holds its pipe longer, a daemon that the step has left, is not."""
PIPE_BYTES = 1 << 20
"""Linux's limit for a user's pipe; its default of 64 KB is soon filled by a worker that prints much."""
START = "import sys; sys.path.append(sys.argv[1]); from marin_resources.ray_tpu.log.pump import main; "
START += "main(*map(int, sys.argv[2:]))"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(marin_resources.__file__)))
"""Where the package is."""
SIGNALS_KEPT_OFF = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_running: list[subprocess.Popen[bytes]] = []


class Pump:
    """A pump: what is written to `fd` is in the log soon after `begin`."""

    def __init__(self, file: str | None, *, tee: bool) -> None:
        """With `tee` onto this process's stdout as it is now, too; without a file only there."""
        read, self.fd = os.pipe()
        begin, self._begin = os.pipe()
        with suppress(OSError, AttributeError):  # this user may have no more of them, and macOS has none
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        opened = [read, begin]
        try:
            if file is not None:
                opened.append(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))
            self._process = _start(read, begin, opened[2] if file is not None else NO_FD, tee=tee)
        except BaseException:
            os.close(self.fd)
            os.close(self._begin)
            raise
        finally:
            for fd in opened:
                os.close(fd)

    def begin(self, secrets: Iterable[str], first_line: str) -> None:
        """Nothing else is written to stdout from now on: it gets `first_line`, if there is one, and then the log."""
        lines = [f"{first_line}\n".encode() if first_line else b"", *map(printed, forms_of(secrets))]
        fd, self._begin = self._begin, NO_FD
        with suppress(BrokenPipeError), open(fd, "wb") as pipe:  # if it has died, the next print says so
            pipe.writelines(line.hex().encode() + b"\n" for line in lines)

    def close(self) -> None:
        """Nothing more is written to `fd` by this process: wait for the last lines."""
        if self._begin != NO_FD:
            os.close(self._begin)
        os.close(self.fd)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_LINES_S)


def pump_pids() -> set[int]:
    """The pumps that this process has started. They end by themselves, after all that prints."""
    return {process.pid for process in _running}


def _start(read: int, begin: int, log: int, *, tee: bool) -> subprocess.Popen[bytes]:
    _running[:] = [process for process in _running if process.poll() is None]
    arguments = [ROOT, *map(str, (log, begin, int(tee)))]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS_KEPT_OFF)  # is inherited, and never lifted there
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, *arguments],
            stdin=read,
            stdout=None if tee else subprocess.DEVNULL,
            pass_fds=[fd for fd in (log, begin) if fd != NO_FD],
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            cwd="/",
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _running.append(process)
    return process
