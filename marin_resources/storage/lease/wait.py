"""Acquire a lease from a dead holder after its time to live, and never from a live one."""

from __future__ import annotations

import time

from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError
from marin_resources.storage.lease.watch import LeaseWatch

POLL_S = 1.0


def acquire_unless_live(output_path: str) -> Lease:
    """Acquire the lease of the output at `output_path`. Raises LeaseHeldError if its holder shows a sign of life within
    its time to live; the kernel's lock on a disk is one."""
    watch, first, stale = LeaseWatch(), None, None
    while True:
        looked_at_s = watch.begin()
        try:
            return lease.acquire(output_path, None, stale=stale)
        except LeaseHeldError as held:
            holder = held.holder
            if watch.is_stale(holder, looked_at_s):
                stale = holder.generation
                continue
            if holder.ttl_s is None or first not in (None, holder.generation):
                raise
            first = holder.generation
        time.sleep(POLL_S)
