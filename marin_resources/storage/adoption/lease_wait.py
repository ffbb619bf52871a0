"""Acquire what needs an output's lease: from a dead holder after its time to live, and never from a live one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from marin_resources.output import Holder
from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.lease.watch import LeaseWatch

POLL_S = 1.0

T = TypeVar("T")


def when_free(acquire: Callable[[str | None], T], label: str, report: Callable[[str], None]) -> T:
    """What `acquire` returns, given the generation of a lease that may be taken over. Raises AdoptionError for a live
    holder."""
    watch, stale, first = LeaseWatch(), None, None
    while True:
        looked_at_s = watch.begin()
        try:
            return acquire(stale)
        except LeaseHeldError as held:
            holder = held.holder
        if watch.is_stale(holder, looked_at_s):
            stale = holder.generation
            continue
        if holder.ttl_s is None or (first is not None and holder.generation != first):
            raise _held(label, holder)
        if first is None:
            first = holder.generation
            report(f"{label}: held by {holder.describe()}; waiting up to {holder.ttl_s:g} s for a sign of life")
        time.sleep(POLL_S)


def _held(label: str, holder: Holder) -> AdoptionError:
    return AdoptionError(
        f"{label!r} is being computed by {holder.describe()}. Wait until it is complete, or stop that run first."
    )
