"""The process of a watchdog (`watchdog.py`): waits until the lease is lost, released, or past its deadline.

In:  stdin, a JSON object per line: {"deadline_s": …} after each renewal, {"lost": reason} or {"released": true}.
Out: if the lease is lost or past its deadline, its parent is dead; the log and the mark of the attempt state why.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

import psutil

from marin_resources.storage.lease.heartbeat import clock_s

POLL_S = 1.0
"""A timer does not count the time that the machine was suspended, the clock of leases does."""
LAST_WORDS_S = 60.0
"""Time limit for recording the loss: the network may be broken."""
LOG_TIMEOUT_S = 2.0
"""Time limit for the last lines of the log: a daemon that the step left running may hold its pipe for longer."""
WORKER, LOG = 0, 2
"""File descriptors: messages of the worker, and the log of its attempt."""


def main(worker: str, output_path: str, attempt: str, *pumps: str) -> None:
    reason = wait_for_loss()
    if reason is None or os.getppid() != int(worker):
        return
    kept = {os.getpid(), *map(int, pumps)}
    kill(int(worker), kept)
    signal.alarm(int(LAST_WORDS_S))  # ends this process
    os.write(LOG, f"The lease was lost: {reason}. This worker stops at once and publishes nothing.\n".encode())
    _leave_log([int(pid) for pid in pumps])
    _record_loss(reason, output_path, int(attempt))


def wait_for_loss() -> str | None:
    """Return why the lease is lost; None if it was released, or if the worker has ended."""
    deadline_s, messages = float("inf"), _Messages()
    while True:
        for message in messages.arrived(min(POLL_S, max(0.0, deadline_s - clock_s()))):
            if "lost" in message:
                return str(message["lost"])
            if "released" in message:
                return None
            deadline_s = message["deadline_s"]
        if messages.ended:
            return None
        if clock_s() > deadline_s:
            return "it was not renewed in time"


def kill(worker: int, kept: Collection[int]) -> None:
    """Kill a process and its descendants. It is stopped first, so that it writes nothing while they are listed."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
        os.kill(worker, signal.SIGSTOP)
        for child in psutil.Process(worker).children(recursive=True):
            if child.pid not in kept:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        os.kill(worker, signal.SIGKILL)


class _Messages:
    """The lines of the worker's pipe."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""

    def arrived(self, timeout_s: float) -> Iterator[dict[str, Any]]:
        """Yield what arrives within `timeout_s`."""
        if not select.select([WORKER], [], [], timeout_s)[0]:
            return
        data = os.read(WORKER, 1 << 16)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from map(json.loads, lines)


def _leave_log(pumps: list[int]) -> None:
    """Close the log, and wait until its pump, if any, has written the last line."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), LOG)
    processes = []
    for pid in pumps:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    psutil.wait_procs(processes, timeout=LOG_TIMEOUT_S)


def _record_loss(reason: str, output_path: str, attempt: int) -> None:
    # late, for their weight: a watchdog is started for each attempt, and few lose their lease
    from marin_resources.ray_tpu.log.spool import upload_spool
    from marin_resources.storage.output import attempts

    ended = {"outcome": "lease_lost", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
    try:
        attempts.end_attempt(output_path, attempt, ended)
    finally:
        upload_spool(attempts.log_path(output_path, attempt))
    sys.exit(0)
