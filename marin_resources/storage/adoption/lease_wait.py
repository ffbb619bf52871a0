"""Wait for the lease of an output that is adopted, or whose adoption is taken back; report the holder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.lease.wait import when_free
from marin_resources.types.output import Holder

T = TypeVar("T")


def acquire_or_refuse(acquire: Callable[[str | None], T], label: str, report: Callable[[str], None]) -> T:
    """The result of `acquire`, as in `when_free`. Raises AdoptionError for a live holder."""

    def on_wait(holder: Holder) -> None:
        report(f"{label}: held by {holder.describe()}; waiting up to {holder.ttl_s:g} s for a sign of life")

    try:
        return when_free(acquire, on_wait)
    except LeaseHeldError as held:
        raise AdoptionError(
            f"{label!r} is being computed by {held.holder.describe()}. Wait until it is complete, or stop that run "
            "first."
        ) from None
