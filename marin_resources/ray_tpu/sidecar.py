"""A companion: a process beside a worker that outlives it for a moment, such as the pump of its log.

It has a session of its own and blocks SIGTERM, SIGINT and SIGHUP, so a stop of the worker does not stop it. It
ends by itself: by a message, or when its worker is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any

import marin_resources

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(marin_resources.__file__)))
"""The folder that contains the package."""
BLOCKED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_running: list[subprocess.Popen[bytes]] = []


def start_sidecar(
    module: str,
    arguments: Iterable[object],
    *,
    options: Iterable[str] = (),
    stdin: int | IO[Any],
    stdout: int | None = None,
    stderr: int | None = None,
    pass_fds: Iterable[int] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `main(*arguments)` of a module of this package in a new Python, with these options of the interpreter."""
    _running[:] = [process for process in _running if process.poll() is None]
    start = f"import sys; sys.path.append(sys.argv[1]); from {module} import main; main(*sys.argv[2:])"
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)  # a companion inherits the mask, never unblocks it
    try:
        process = subprocess.Popen(
            [sys.executable, *options, "-c", start, ROOT, *map(str, arguments)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            env=env,
            cwd="/",
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _running.append(process)
    return process


def sidecar_pids() -> set[int]:
    """Return the ids of the companions that this process started."""
    return {process.pid for process in _running}
