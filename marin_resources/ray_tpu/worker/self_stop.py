"""Stop a worker that lost its lease: kill its process and its children at once.

A step's function cannot be interrupted from another thread: it may be in C code for minutes. So the process is killed,
after one line in the log of its attempt. Its shards on Ray end too: Ray cancels the tasks of a dead owner.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.worker.end_process import end_process, kill_children
from marin_resources.storage.lease.text import ttl_s
from marin_resources.storage.output import attempts

RECORD_TIMEOUT_S = 2.0
"""Time limit for recording the loss: the network may be broken."""
RECORD_TTL_FRACTION = 0.1
"""The same limit as a fraction of the lease's time to live. 0.8 of that may have passed, and the process must be gone
before the rest has."""


def stop_this_process(reason: str, output_path: str, attempt: int) -> None:
    """Kill this process and its children. Does not return."""
    os.write(2, f"The lease was lost: {reason}. This worker stops at once and publishes nothing.\n".encode())
    kill_children()
    timeout_s = min(RECORD_TIMEOUT_S, RECORD_TTL_FRACTION * ttl_s())
    end_process(lambda: _record_loss(reason, output_path, attempt), timeout_s)


def _record_loss(reason: str, output_path: str, attempt: int) -> None:
    ended = {"outcome": "lease_lost", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
    attempts.end_attempt(output_path, attempt, ended)
    upload_spool(attempts.log_path(output_path, attempt))
