"""The watchdog of a worker: a process beside it that kills it, and its children, when its lease is lost.

A step's function cannot be interrupted from another thread, and a process with busy threads or C code acts late. The
watchdog stops the worker's process at once, so that a worker without a lease writes at most what is on
its way already. It knows the deadline of the lease, so the worker need not be able to run. Its shards on Ray end too:
Ray cancels the tasks of a dead owner.

In:  what the lease reports.   Out: a dead worker; one line in the log of its attempt, and the loss in the mark.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
import time

from marin_resources.ray_tpu.sidecar import sidecar_pids, start_sidecar
from marin_resources.ray_tpu.worker.end_process import end_process

ANSWER_S = 10.0
"""A watchdog that has not killed its worker after this long is gone or stuck, and the worker kills itself."""

log = logging.getLogger(__name__)


class Watchdog:
    """Observes a lease. The process is started by the first report; a lease on a disk reports only that it is lost."""

    def __init__(self, output_path: str, attempt: int) -> None:
        self._output_path, self._attempt = output_path, attempt
        self._using = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def renewed(self, deadline_s: float) -> None:
        with self._using:
            if not self._ended:
                self._try_to_send({"deadline_s": deadline_s})

    def lost(self, reason: str) -> None:
        """Does not return: the watchdog kills this process."""
        with self._using:
            self._ended = True
            if self._try_to_send({"lost": reason}):
                time.sleep(ANSWER_S)
        os.write(2, f"The lease was lost: {reason}. This worker stops at once and publishes nothing.\n".encode())
        end_process(lambda: None, 0.0)

    def released(self) -> None:
        with self._using:
            if self._process is not None and not self._ended:
                self._try_to_send({"released": True})
            self._ended = True

    def _try_to_send(self, message: dict[str, object]) -> bool:
        try:
            self._send(message)
        except OSError as error:  # the limit of processes: the worker still watches its lease itself
            log.warning("the watchdog of the lease cannot be reached (%s: %s)", type(error).__name__, error)
            return False
        return True

    def _send(self, message: dict[str, object]) -> None:
        line = json.dumps(message).encode() + b"\n"
        if self._process is None or self._process.poll() is not None:
            self._process = _start(self._output_path, self._attempt)
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), line)


def _start(output_path: str, attempt: int) -> subprocess.Popen[bytes]:
    arguments = (os.getpid(), output_path, attempt, *sidecar_pids())
    return start_sidecar("marin_resources.ray_tpu.worker.watchdog_process", arguments, stdin=subprocess.PIPE)
