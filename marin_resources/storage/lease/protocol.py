"""The interface of a held lease, and its two errors: held by another, and lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from marin_resources.output import Holder


class LeaseLostError(RuntimeError):
    """This process no longer holds the lease, so it may not publish."""


class LeaseHeldError(RuntimeError):
    """Another process holds the lease of the output."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(f"{path!r} is being computed by {holder.describe()}.")
        self.holder = holder


class Lease(Protocol):
    """A held lease. It ends with `release()`, or with the process."""

    holder: Holder

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost, or may be. Call it before every effect."""

    def on_lost(self, act: Callable[[str], None]) -> None:
        """Call `act(reason)` from another thread when the lease is lost."""

    def release(self) -> None:
        """Release the lease. Another holder's lease is never touched."""
