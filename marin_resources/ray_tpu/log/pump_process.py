"""Start the pump of a log (`pump.py`), and wait for its last lines.

The pump gets the secrets through a pipe: neither its arguments and environment, which other users of the machine may
read, nor a file holds any. It has a session of its own and blocks SIGTERM, SIGINT and SIGHUP, so it writes the last
lines of a stopped process. It ends when no process can print into its pipe.
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

CLOSE_TIMEOUT_S = 2.0
"""Time limit for the last lines: a daemon that the step left running may hold the pipe for longer."""
PIPE_BYTES = 1 << 20
"""Linux's limit for a user's pipe. A worker that prints much soon fills the default of 64 KB."""
START = "import sys; sys.path.append(sys.argv[1]); from marin_resources.ray_tpu.log.pump import main; "
START += "main(*map(int, sys.argv[2:]))"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(marin_resources.__file__)))
"""The folder that contains the package."""
BLOCKED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_running: list[subprocess.Popen[bytes]] = []


class Pump:
    """A running pump: bytes written to `fd` are in the log soon after `begin`."""

    def __init__(self, file: str | None, *, tee: bool) -> None:
        """With `tee`, the pump writes to this process's current stdout too; if `file` is None, only there."""
        read, self.fd = os.pipe()
        begin, self._begin = os.pipe()
        with suppress(OSError, AttributeError):  # the user's limit is reached, or macOS, which lacks it
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
        """Send the secrets. From now on stdout gets `first_line`, if any, then the log, and must get nothing else."""
        lines = [f"{first_line}\n".encode() if first_line else b"", *map(printed, forms_of(secrets))]
        fd, self._begin = self._begin, NO_FD
        with suppress(BrokenPipeError), open(fd, "wb") as pipe:  # a dead pump: the next print fails
            pipe.writelines(line.hex().encode() + b"\n" for line in lines)

    def close(self) -> None:
        """Close `fd` in this process and wait up to 2 s for the last lines."""
        if self._begin != NO_FD:
            os.close(self._begin)
        os.close(self.fd)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_TIMEOUT_S)


def pump_pids() -> set[int]:
    """Return the ids of the pumps that this process started. They end by themselves, after every printing process."""
    return {process.pid for process in _running}


def _start(read: int, begin: int, log: int, *, tee: bool) -> subprocess.Popen[bytes]:
    _running[:] = [process for process in _running if process.poll() is None]
    arguments = [ROOT, *map(str, (log, begin, int(tee)))]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)  # the pump inherits the mask and never unblocks it
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
