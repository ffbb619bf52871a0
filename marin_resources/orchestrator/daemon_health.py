"""Health of Dagster's daemon, by the heartbeats of its threads."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg

TOLERANCE_S = 30 + 1800
"""Age up to which a heartbeat counts: its interval, and the tolerance of Dagster's UI."""


def is_daemon_healthy(instance: dg.DagsterInstance, daemon: str) -> bool:
    """Whether a thread of the daemon is required, has a recent heartbeat, and met no error in its last round."""
    heartbeat = instance.get_daemon_heartbeats().get(daemon)
    if heartbeat is None or daemon not in instance.get_required_daemon_types():
        return False
    return is_recent(heartbeat) and not heartbeat.errors


def is_recent(heartbeat: Any) -> bool:
    """Whether the thread of a heartbeat is alive, as far as that is known."""
    return bool(time.time() <= heartbeat.timestamp + TOLERANCE_S)
