"""The decision about one delivery, from its state so far and its files now. It does no I/O of its own.

arriving    seen, and not complete
taken       its partition was requested; it is watched for changes
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from marin_sensors.deliveries.completeness import Completeness, DeliveryFiles
from marin_sensors.deliveries.delivery_listing import DeliveryListing

ABSENT_LOOKS = 2
"""So many looks in a row must miss a delivery before it counts as gone: a listing may be cut."""


class DeliveryPhase(enum.StrEnum):
    ARRIVING = "arriving"
    TAKEN = "taken"


class DeliveryEvent(enum.StrEnum):
    ARRIVING = "arriving"
    """It has arrived in part."""
    UNREADABLE = "unreadable"
    """Something in it cannot be read, so it is neither complete nor compared with what was taken."""
    TAKE = "take"
    """It is complete: its partition is to be made."""
    CHANGED = "changed"
    """The files are not those that were taken."""
    VANISHED = "vanished"
    REVERTED = "reverted"
    """The files are those that were taken, again."""


@dataclass(frozen=True, kw_only=True)
class DeliveryState:
    """The state of a delivery, as the sensor keeps it."""

    phase: DeliveryPhase
    fingerprint: str
    """As it was seen last."""
    since_s: float
    """When it was first seen so, by this machine's clock, in seconds since 1970."""
    taken: str = ""
    """The fingerprint of what was taken; empty if nothing was."""
    revision: int = 1
    """The revision of the partition that is requested next, or that was requested last."""
    absent: int = 0
    """Looks in a row that missed it."""
    reported: str = ""
    """The fingerprint of the last change that was reported."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An event of a delivery, which the sensor reports or acts on."""

    delivery: str
    event: DeliveryEvent
    why: str = ""
    """For an arriving one: what it lacks. For an unreadable one: what cannot be read."""
    revision: int = 1


def decide(
    delivery: str,
    state: DeliveryState | None,
    seen: DeliveryListing | None,
    now_s: float,
    rule: Completeness,
    files: DeliveryFiles,
    *,
    revises: bool,
) -> tuple[DeliveryState | None, Finding | None]:
    """Return the state of the delivery from now on (None: forget it), and its event.

    `revises`: whether a delivery that has changed is taken again, as a new revision.
    """
    if seen is None:
        return _absent(delivery, state)
    now = seen.fingerprint
    if seen.unusable:
        state = state or DeliveryState(phase=DeliveryPhase.ARRIVING, fingerprint=now, since_s=now_s)
        finding = Finding(delivery=delivery, event=DeliveryEvent.UNREADABLE, why=seen.unusable, revision=state.revision)
        return replace(state, absent=0), finding
    if state is None:
        state = DeliveryState(phase=DeliveryPhase.ARRIVING, fingerprint=now, since_s=now_s)
    elif state.fingerprint != now or state.since_s > now_s:  # the clock was set back: count from now
        state = replace(state, fingerprint=now, since_s=now_s, absent=0)
        if state.taken and state.taken != now:
            return _changed(delivery, state, revises=revises)
    state = replace(state, absent=0)
    if state.taken == now:
        return _as_taken(delivery, state)
    if state.phase is DeliveryPhase.TAKEN:
        return state, None
    lacks = rule.lacks(seen, now_s - state.since_s, files) if seen.stamps else "no file that is wanted has arrived"
    if lacks:
        return state, Finding(delivery=delivery, event=DeliveryEvent.ARRIVING, why=lacks, revision=state.revision)
    taken = replace(state, phase=DeliveryPhase.TAKEN, taken=now, reported="")
    return taken, Finding(delivery=delivery, event=DeliveryEvent.TAKE, revision=state.revision)


def _absent(delivery: str, state: DeliveryState | None) -> tuple[DeliveryState | None, Finding | None]:
    if state is None or state.absent >= ABSENT_LOOKS:
        return state, None
    state = replace(state, absent=state.absent + 1)
    if state.absent < ABSENT_LOOKS:
        return state, None
    return (state if state.taken else None), Finding(
        delivery=delivery, event=DeliveryEvent.VANISHED, revision=state.revision
    )


def _changed(delivery: str, state: DeliveryState, *, revises: bool) -> tuple[DeliveryState, Finding]:
    """Also if it is taken again, it must be complete first, and unchanged since an earlier look."""
    if revises and state.phase is DeliveryPhase.TAKEN:
        state = replace(state, phase=DeliveryPhase.ARRIVING, revision=state.revision + 1)
    state = replace(state, reported=state.fingerprint)
    return state, Finding(delivery=delivery, event=DeliveryEvent.CHANGED, revision=state.revision)


def _as_taken(delivery: str, state: DeliveryState) -> tuple[DeliveryState, Finding | None]:
    """It is what was taken. A revision that had begun to arrive is none."""
    if not state.reported and state.phase is DeliveryPhase.TAKEN:
        return state, None
    revision = state.revision - 1 if state.phase is DeliveryPhase.ARRIVING else state.revision
    state = replace(state, phase=DeliveryPhase.TAKEN, reported="", revision=revision)
    return state, Finding(delivery=delivery, event=DeliveryEvent.REVERTED, revision=revision)
