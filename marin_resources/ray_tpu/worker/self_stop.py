"""How a worker stops when it has lost its lease: at once, with all that it started.

A step's function cannot be interrupted from another thread: it may be in C for minutes. So the process goes, and says
so in the log of its attempt. Shards that it has given to Ray go too: Ray ends the tasks of an owner that is dead.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.worker.end_process import end_process, kill_children
from marin_resources.storage.lease.text import ttl_s
from marin_resources.storage.output import attempts
from marin_resources.storage.paths import is_local

NOTE_TIMEOUT_S = 2.0
"""The network may be what is broken."""
NOTE_IN_A_LIFE = 0.1
"""The same as a part of the lease's time to live, of which 0.8 may have passed: the process goes before it is over."""


def stop_this_process(reason: str, output_path: str, attempt: int) -> None:
    """Kill this process and its children. Does not return."""
    os.write(2, f"The lease was lost: {reason}. This worker stops at once and publishes nothing.\n".encode())
    kill_children()
    end_process(lambda: _note(reason, output_path, attempt), min(NOTE_TIMEOUT_S, NOTE_IN_A_LIFE * ttl_s()))


def _note(reason: str, output_path: str, attempt: int) -> None:
    ended = {"outcome": "lease_lost", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
    attempts.end_attempt(output_path, attempt, ended)
    if not is_local(output_path):
        upload_spool(attempts.log_path(output_path, attempt))
