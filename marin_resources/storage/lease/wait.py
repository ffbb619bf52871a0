"""Acquire what needs a lease: from a dead holder after its time to live, and never from a live one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.types.output import Holder

POLL_S = 1.0

T = TypeVar("T")


def when_free(acquire: Callable[[str | None], T], on_wait: Callable[[Holder], None] = lambda holder: None) -> T:
    """The result of `acquire`, which gets the generation of a lease that may be taken over. `on_wait` is called once,
    before the first wait.

    Raises LeaseHeldError for a holder that shows a sign of life within its time to live; the kernel's lock on a disk is
    one.
    """
    watch, first, stale = LeaseWatch(), None, None
    while True:
        looked_at_s = watch.begin()
        try:
            return acquire(stale)
        except LeaseHeldError as held:
            holder = held.holder
            if watch.is_stale(holder, looked_at_s):
                stale = holder.generation
                continue
            if holder.ttl_s is None or first not in (None, holder.generation):
                raise
        if first is None:
            on_wait(holder)
        first = holder.generation
        time.sleep(POLL_S)


def acquire_unless_live(output_path: str) -> Lease:
    """Acquire the lease of the output at `output_path`. Raises as `when_free`."""
    return when_free(lambda stale: lease.acquire(output_path, None, stale=stale))
