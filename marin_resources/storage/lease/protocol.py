"""The interface of a held lease, and its two errors: held by another, and lost."""

from __future__ import annotations

from typing import Protocol

from marin_resources.types.errors import MarinError
from marin_resources.types.output import Holder


class LeaseLostError(MarinError):
    """This process no longer holds the lease, so it may not publish."""


class LeaseHeldError(MarinError):
    """Another process holds the lease of the output."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(f"{path!r} is being computed by {holder.describe()}.")
        self.holder = holder


class LeaseObserver(Protocol):
    """The interface of an observer of a lease. Its methods are called from several threads."""

    def renewed(self, deadline_s: float) -> None:
        """The lease is held until `deadline_s`, by the clock of `heartbeat.py`. A lease on a disk has no deadline."""

    def lost(self, reason: str) -> None:
        """The lease is lost. Called once."""

    def released(self) -> None:
        """The lease has ended as it should."""


class Lease(Protocol):
    """A held lease. It ends with `release()`, or with the process."""

    holder: Holder

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost, or may be. Call it before every effect."""

    def observe(self, observer: LeaseObserver) -> None:
        """Report the lease's events to the observer, beginning with those that have happened so far."""

    def release(self) -> None:
        """Release the lease. Another holder's lease is never touched."""
