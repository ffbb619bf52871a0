"""The state of an output in one word, as people ask for it."""

from __future__ import annotations

import enum

from marin_resources.output import Match, Observed, Status


class State(enum.StrEnum):
    COMPLETE = "complete"
    RUNNING = "running"
    FAILED = "failed"
    DEAD = "dead"
    """Its worker has neither finished nor failed, and holds no lease any more."""
    BLOCKED = "blocked"
    MISSING = "missing"


def state_of(observed: Observed) -> State:
    """The state of an output, as it was observed."""
    if observed.damage or observed.match is Match.OTHER:
        return State.BLOCKED
    if observed.done:
        return State.COMPLETE
    if observed.holder is not None:
        return State.RUNNING
    if observed.status is Status.RUNNING:
        return State.DEAD
    return State.MISSING if observed.status is None else State.FAILED
