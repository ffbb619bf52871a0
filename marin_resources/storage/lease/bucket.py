"""The lease in a bucket: an object that its holder renews by compare-and-swap.

Acquire, renew, release and take over are the same operation: write, if the generation is the one that was read. The
object is never deleted while its output exists, and then only by the generation of its release: a late delete would hit
the next holder's lease.
"""

from __future__ import annotations

import logging
import threading
import time

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.lease import text as lease_text
from marin_resources.storage.lease.heartbeat import Heartbeat, clock_s
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError, LeaseObserver
from marin_resources.types.output import Holder

log = logging.getLogger(__name__)


class BucketLease:
    def __init__(self, path: str, holder: Holder, generation: str, began_s: float) -> None:
        self.path, self.holder, self._generation = path, holder, generation
        self._writing = threading.Lock()
        self._released = False
        assert holder.ttl_s is not None
        self._heartbeat = Heartbeat(self._renew, ttl_s=holder.ttl_s, began_s=began_s)

    def check(self) -> None:
        self._heartbeat.check()

    def observe(self, observer: LeaseObserver) -> None:
        self._heartbeat.observe(observer)

    def release(self) -> None:
        self._heartbeat.stop()
        with self._writing:
            self._released = True
            try:
                control.write(self.path, lease_text.free_text(self.holder), expected=self._generation)
            except ConflictError:
                log.info("the lease %s is held by another process now, and is left alone", self.path)
            except UnavailableError as error:
                log.warning("the lease could not be released, and will become stale (%s)", error)

    def _renew(self) -> None:
        with self._writing:
            if self._released:
                return
            text = lease_text.held_text(self.holder, time.time())
            try:
                self._generation = control.write(self.path, text, expected=self._generation)
            except ConflictError:
                self._generation = self._own_generation()

    def _own_generation(self) -> str:
        """After a conflict: return the generation of our own earlier renewal, whose response was lost.

        Raises LeaseLostError if the lease is another's.
        """
        other = bucket_holder(self.path)
        if other is not None and other.owner == self.holder.owner:
            return other.generation
        whose = f"taken over by {other.describe()}" if other else "removed or released by another process"
        raise LeaseLostError(f"{self.path!r} was {whose}")


def acquire_in_bucket(path: str, holder: Holder, stale: str | None) -> BucketLease:
    """Acquire the lease if it is free, or held at the generation `stale`. Raises LeaseHeldError."""
    while True:
        began_s = clock_s()
        snapshot = control.read(path)
        if snapshot is not None and snapshot.generation != stale:
            other = lease_text.parse(snapshot.data, snapshot.generation, path)
            if other is not None:
                raise LeaseHeldError(path.rpartition("/")[0], other)
        try:
            text = lease_text.held_text(holder, time.time())
            generation = control.write(path, text, expected=snapshot.generation if snapshot else None)
        except ConflictError:
            continue  # another process was faster: read who holds it
        return BucketLease(path, holder, generation, began_s)


def remove_released(path: str, holder: Holder) -> None:
    """Remove the object as this holder has released it. Whoever has acquired the lease since keeps it."""
    snapshot = control.read(path)
    if snapshot is None or snapshot.data != lease_text.free_text(holder):
        return
    try:
        control.delete(path, expected=snapshot.generation)
    except ConflictError:
        return


def bucket_holder(path: str) -> Holder | None:
    """The holder that the object names; None if the lease is free."""
    snapshot = control.read(path)
    return lease_text.parse(snapshot.data, snapshot.generation, path) if snapshot is not None else None
