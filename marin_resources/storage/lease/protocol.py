"""A held lease, and the errors of one that is held by another or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from marin_resources.output import Holder


class LeaseLostError(RuntimeError):
    """The lease is not ours any more, so nothing may be published."""


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
