"""`.executor_status.lock`: one writer for an output.

On a local disk the kernel holds the lock and frees it when the holder dies (`disk.py`). In a bucket it is an object
that the holder renews by compare-and-swap (`bucket.py`). The lease saves work: two concurrent runs compute an output
once. The commit object (`output/commit.py`) keeps a late writer from publishing.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime

from marin_resources.storage.lease.bucket import acquire_in_bucket, bucket_holder, remove_released
from marin_resources.storage.lease.disk import acquire_on_disk, disk_holder
from marin_resources.storage.lease.protocol import Lease
from marin_resources.storage.lease.text import ttl_s
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Holder

NAME = ".executor_status.lock"


def acquire(output_path: str, run_id: str | None, *, attempt: int = 0, stale: str | None = None) -> Lease:
    """Acquire the lease of the output at `output_path`. Raises LeaseHeldError.

    `stale` is the generation of a held lease that may be taken over: it did not change for its time to live, or its
    holder is known to be dead. Every renewal changes the generation, so a live holder keeps its lease.
    """
    lock = join(output_path, NAME)
    if is_local(output_path):
        return acquire_on_disk(lock, _new_holder(run_id, attempt, None), stale)
    return acquire_in_bucket(lock, _new_holder(run_id, attempt, ttl_s()), stale)


def holder_of(output_path: str) -> Holder | None:
    """The holder of the lease, or None if it is free. In a bucket the holder may be dead: see `LeaseWatch`."""
    lock = join(output_path, NAME)
    if is_local(output_path):
        return disk_holder(lock)
    return bucket_holder(lock)


def release_for_good(held: Lease, output_path: str) -> None:
    """Release the lease of an output that does not exist any more, and leave no object of it in a bucket."""
    held.release()
    if not is_local(output_path):
        remove_released(join(output_path, NAME), held.holder)


def _new_holder(run_id: str | None, attempt: int, ttl: float | None) -> Holder:
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
