"""Start the pump of a log (`pump.py`), and wait for its last lines.

The pump gets the secrets through a pipe: neither its arguments and environment, which other users of the machine may
read, nor a file holds any. It writes the last lines of a stopped process too, and ends when no process can print into
its pipe.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress

from marin_resources.ray_tpu.log.pump import NO_FD
from marin_resources.ray_tpu.log.redact import forms_of, printed
from marin_resources.ray_tpu.sidecar import start_sidecar

CLOSE_TIMEOUT_S = 2.0
"""Time limit for the last lines: a daemon that the step left running may hold the pipe for longer."""
PIPE_BYTES = 1 << 20
"""Linux's limit for a user's pipe. A worker that prints much soon fills the default of 64 KB."""


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
                opened.append(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666))
            log = opened[2] if file is not None else NO_FD
            self._process = start_sidecar(
                "marin_resources.ray_tpu.log.pump",
                (log, begin, int(tee)),
                options=("-I", "-S"),
                stdin=read,
                stdout=None if tee else subprocess.DEVNULL,
                pass_fds=[fd for fd in (log, begin) if fd != NO_FD],
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            )
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
