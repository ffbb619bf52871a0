"""`.executor_status.lock`: one writer for an output.

On a local disk the kernel holds the lock and frees it when its holder dies (`lease_local.py`). In a bucket it is an
object that the holder renews by compare-and-swap (`lease_bucket.py`). The lease saves work: two who come at once do
it once. That no late writer publishes is the business of the commit object (`commit.py`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from marin_resources.output import Holder
from marin_resources.storage.files import is_local, join
from marin_resources.storage.lease.heartbeat import LeaseLostError
from marin_resources.storage.lease.text import ttl_s

__all__ = ["NAME", "Lease", "LeaseHeldError", "LeaseLostError", "acquire", "holder_of"]

NAME = ".executor_status.lock"


class LeaseHeldError(RuntimeError):
    """Someone else works on the output."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(f"{path!r} is being made by {holder.describe()}.")
        self.holder = holder


class Lease(Protocol):
    """A held lease. `release()` it, or die."""

    holder: Holder

    def check(self) -> None:
        """Raise LeaseLostError if it is ours no more, or may not be: to be called before every effect."""

    def on_lost(self, act: Callable[[str], None]) -> None:
        """Have `act(reason)` called from another thread when the lease is lost."""

    def release(self) -> None:
        """Give it up. Another's lease is never touched."""


def acquire(output_path: str, run_id: str | None, *, attempt: int = 0, stale: str | None = None) -> Lease:
    """Take the lease of the output at `output_path`. Raises LeaseHeldError.

    `stale` is the generation of a held lease that may be taken over: one that did not change for its time to live, or
    whose holder is known to be dead. It changes with every renewal, so whoever still lives is not robbed.
    """
    lock = join(output_path, NAME)
    if is_local(output_path):
        from marin_resources.storage.lease.disk import acquire_local

        return acquire_local(lock, _sign(run_id, attempt, None), stale)
    from marin_resources.storage.lease.bucket import acquire_in_bucket

    return acquire_in_bucket(lock, _sign(run_id, attempt, ttl_s()), stale)


def holder_of(output_path: str) -> Holder | None:
    """Who holds the lease, or None if it is free. In a bucket the holder may be dead: see `LeaseWatch`."""
    lock = join(output_path, NAME)
    if is_local(output_path):
        from marin_resources.storage.lease.disk import local_holder

        return local_holder(lock)
    from marin_resources.storage.lease.bucket import bucket_holder

    return bucket_holder(lock)


def _sign(run_id: str | None, attempt: int, ttl: float | None) -> Holder:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(
        owner=uuid.uuid4().hex,
        host=os.uname().nodename,
        pid=os.getpid(),
        run_id=run_id,
        since=now,
        heartbeat=now,
        ttl_s=ttl,
        attempt=attempt,
    )
