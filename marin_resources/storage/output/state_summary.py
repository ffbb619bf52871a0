"""The state of an output in one word, as people request it; and of all partitions of a version, by few requests."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from marin_resources.storage.output.store import Store, other_version_message
from marin_resources.types.output import Match, Observed, Output, Status, describe_adopted


class State(enum.StrEnum):
    COMPLETE = "complete"
    RUNNING = "running"
    FAILED = "failed"
    DEAD = "dead"
    """The worker has neither finished nor failed, and holds no lease any more."""
    BLOCKED = "blocked"
    MISSING = "missing"


UNFINISHED = frozenset({State.MISSING, State.FAILED, State.DEAD})
"""States of an output that is not complete, and that nobody computes."""


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """The state of one partition."""

    key: str
    state: State
    bytes: int | None = None
    files: int | None = None
    finished_s: int | None = None
    """Seconds since 1970."""
    error: str = ""
    """Reason of a failure or a block; the holder that computes it."""
    adopted: str = ""
    """Source and reason of its adoption, as a phrase."""


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


def states_of_partitions(store: Store, whole: Output, keys: Iterable[str] = ()) -> list[PartitionState]:
    """The states of these partitions of the version `whole`, and of all that have a folder; in the order of the keys.

    Complete ones are known by their markers. The states of the others are read one by one.
    """
    existing = store.partitions(whole)
    done = store.done_partitions(whole, existing)
    requested = list(dict.fromkeys([*keys, *existing]))
    folders = frozenset(existing)
    outputs = {key: whole.at(key) for key in requested if key in folders and key not in done}
    looked = store.look(outputs.values())
    states = []
    for key in requested:
        if key in done:
            size = done[key]
            states.append(
                PartitionState(
                    key=key, state=State.COMPLETE, bytes=size.bytes, files=size.files, finished_s=size.finished_s
                )
            )
        elif key in outputs:
            states.append(_state_of(outputs[key], key, looked[outputs[key]]))
        else:
            states.append(PartitionState(key=key, state=State.MISSING))
    return states


def _state_of(output: Output, key: str, observed: Observed) -> PartitionState:
    state, record = state_of(observed), observed.record
    error = str(record.error or "was stopped") if state is State.FAILED else ""
    if state is State.BLOCKED:
        error = observed.damage or other_version_message(output, observed.path)
    if state is State.RUNNING and observed.holder is not None:
        error = f"by {observed.holder.describe()}"
    if state is State.DEAD:
        error = "its worker is gone; run again to continue"
    return PartitionState(
        key=key,
        state=state,
        bytes=record.manifest.bytes,
        files=record.manifest.files,
        error=error,
        adopted=describe_adopted(record) if state is State.COMPLETE else "",
    )
