"""What is to be done about one drop, from what is known of it and what it looks like now. It does no I/O of its own.

arriving    seen, and not complete
taken       its partition was requested; it is watched for changes
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from marin_sensors.drops.completeness import Completeness, DropFiles
from marin_sensors.drops.drop_listing import DropListing

ABSENT_LOOKS = 2
"""So many looks in a row must miss a drop before it counts as gone: a listing may be cut."""


class DropPhase(enum.StrEnum):
    ARRIVING = "arriving"
    TAKEN = "taken"


class DropEvent(enum.StrEnum):
    ARRIVING = "arriving"
    """It is there, and not complete."""
    UNREADABLE = "unreadable"
    """Something in it cannot be read, so it is neither complete nor compared with what was taken."""
    TAKE = "take"
    """It is complete: its partition is to be made."""
    CHANGED = "changed"
    """Its files are not those that were taken."""
    VANISHED = "vanished"
    REVERTED = "reverted"
    """Its files are those that were taken, again."""


@dataclass(frozen=True, kw_only=True)
class DropState:
    """What the sensor knows of a drop."""

    phase: DropPhase
    fingerprint: str
    """As it was seen last."""
    since_s: float
    """When it was first seen so, by this machine's clock, in seconds since 1970."""
    taken: str = ""
    """The fingerprint of what was taken; empty if nothing was."""
    revision: int = 1
    """Of the partition that is made of it next, or that was made last."""
    absent: int = 0
    """Looks in a row that missed it."""
    reported: str = ""
    """The fingerprint of the last change that was reported."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the sensor says about a drop, or does with it."""

    drop: str
    what: DropEvent
    why: str = ""
    """For an arriving one: what it lacks. For an unreadable one: what cannot be read."""
    revision: int = 1


def judge(
    drop: str,
    known: DropState | None,
    seen: DropListing | None,
    now_s: float,
    rule: Completeness,
    files: DropFiles,
    *,
    revises: bool,
) -> tuple[DropState | None, Finding | None]:
    """Return what is known of the drop from now on (None: nothing), and what is to be done.

    `revises`: whether a drop that has changed is taken again, as a new revision.
    """
    if seen is None:
        return _absent(drop, known)
    now = seen.fingerprint
    if seen.unusable:
        known = known or DropState(phase=DropPhase.ARRIVING, fingerprint=now, since_s=now_s)
        finding = Finding(drop=drop, what=DropEvent.UNREADABLE, why=seen.unusable, revision=known.revision)
        return replace(known, absent=0), finding
    if known is None:
        known = DropState(phase=DropPhase.ARRIVING, fingerprint=now, since_s=now_s)
    elif known.fingerprint != now or known.since_s > now_s:  # the clock was set back: count from now
        known = replace(known, fingerprint=now, since_s=now_s, absent=0)
        if known.taken and known.taken != now:
            return _changed(drop, known, revises=revises)
    known = replace(known, absent=0)
    if known.taken == now:
        return _as_taken(drop, known)
    if known.phase is DropPhase.TAKEN:
        return known, None
    lacks = rule.lacks(seen, now_s - known.since_s, files) if seen.stamps else "no file that is wanted has arrived"
    if lacks:
        return known, Finding(drop=drop, what=DropEvent.ARRIVING, why=lacks, revision=known.revision)
    taken = replace(known, phase=DropPhase.TAKEN, taken=now, reported="")
    return taken, Finding(drop=drop, what=DropEvent.TAKE, revision=known.revision)


def _absent(drop: str, known: DropState | None) -> tuple[DropState | None, Finding | None]:
    if known is None or known.absent >= ABSENT_LOOKS:
        return known, None
    known = replace(known, absent=known.absent + 1)
    if known.absent < ABSENT_LOOKS:
        return known, None
    return (known if known.taken else None), Finding(drop=drop, what=DropEvent.VANISHED, revision=known.revision)


def _changed(drop: str, known: DropState, *, revises: bool) -> tuple[DropState, Finding]:
    """Also if it is taken again, it must be complete first, and unchanged since an earlier look."""
    if revises and known.phase is DropPhase.TAKEN:
        known = replace(known, phase=DropPhase.ARRIVING, revision=known.revision + 1)
    known = replace(known, reported=known.fingerprint)
    return known, Finding(drop=drop, what=DropEvent.CHANGED, revision=known.revision)


def _as_taken(drop: str, known: DropState) -> tuple[DropState, Finding | None]:
    """It is what was taken. A revision that had begun to arrive is none."""
    if not known.reported and known.phase is DropPhase.TAKEN:
        return known, None
    revision = known.revision - 1 if known.phase is DropPhase.ARRIVING else known.revision
    known = replace(known, phase=DropPhase.TAKEN, reported="", revision=revision)
    return known, Finding(drop=drop, what=DropEvent.REVERTED, revision=revision)
