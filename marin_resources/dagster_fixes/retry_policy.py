"""Database retry timeout of this process: 15 minutes in a run, 0 elsewhere.

For `postgres.py` (dagster-postgres 0.29.27), whose storages have no setting for it.
"""

from __future__ import annotations

RUN_S = 900.0

_retry_timeout_s = 0.0


def enable_retries() -> None:
    """Retry for up to 15 minutes in this process. The executor of a run calls it."""
    global _retry_timeout_s
    _retry_timeout_s = RUN_S


def retry_timeout_s() -> float:
    """In seconds; 0 if the process does not execute a run."""
    return _retry_timeout_s
