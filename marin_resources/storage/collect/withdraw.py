"""Collect an output: it is not complete any more, and everything of it stays where it is until its grace time ends.

    1 the note records its author, the time and the end of the grace time
    2 the copies in the region of its data are withdrawn
    3 its marker is removed
    4 its status is removed, by its generation

All of it under the output's lease. The commit object stays committed, which is what a publisher leaves that died before
it wrote the status: a run that reaches the output writes the status again and computes nothing. A process that is
killed before 4 has collected nothing, and a note beside a status has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from marin_resources.storage import fault_points
from marin_resources.storage.collect.data_location import copies_at, data_path_elsewhere
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as done_partitions
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError, LeaseLostError
from marin_resources.storage.lease.wait import acquire_unless_live
from marin_resources.storage.output import commit, record, status
from marin_resources.storage.output.commit import State
from marin_resources.storage.output.notes.collection import Collected, write_collected
from marin_resources.storage.output.region_copies import withdraw_copies
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Match, Output, Status
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a collection."""

    by: str
    grace: timedelta
    why: str = ""


def withdraw(store: Store, output: Output, terms: Terms) -> Collected:
    """Collect a complete output. Raises KeptError, ControlFileError and UnavailableError."""
    path = store.locate(output)
    if status.read_status(path) is not Status.SUCCESS:
        raise KeptError("it is not complete any more")  # before a lease is written anywhere
    try:
        held = acquire_unless_live(path)
    except LeaseHeldError as error:
        raise KeptError(f"its lease is held by {error.holder.describe()}") from None
    try:
        return _withdraw(store, output, path, terms, held)
    except (ConflictError, LeaseLostError):
        raise KeptError("another program writes there") from None
    finally:
        held.release()


def _withdraw(store: Store, output: Output, path: str, terms: Terms, held: Lease) -> Collected:
    seen, recorded = status.status_generation(path), record_of_complete(path, output)
    copies = copies_at(data_path_elsewhere(recorded))
    note = write_collected(store.prefix, _note(output, recorded, terms))
    fault_points.reach("collection noted")
    withdraw_copies(copies)
    fault_points.reach("copies withdrawn")
    held.check()
    (marks if output.partition is None else done_partitions).remove_marks(store.prefix, output)
    fault_points.reach("marker removed")
    held.check()
    if seen is None:
        raise KeptError("it is not complete any more")
    control.delete(join(path, status.NAME), expected=seen)
    fault_points.reach("status removed")
    return note


def record_of_complete(path: str, output: Output) -> Record:
    """The record of a complete output of this version. Raises KeptError for what is not complete, or has none."""
    if status.read_status(path) is not Status.SUCCESS:
        raise KeptError("it is not complete any more")
    recorded = commit.recorded(path, Status.SUCCESS)
    if recorded is None:
        raise KeptError("it has no record, so nothing could say how to make it again")
    if record.match(recorded, output) is Match.OTHER:
        raise KeptError("another version's output is stored at its path")
    committed = commit.read_commit(path)
    if committed is not None and committed.state is State.CLAIMED:
        raise KeptError("an attempt has claimed it")
    return recorded


def _note(output: Output, recorded: Record, terms: Terms) -> Collected:
    now, size = datetime.now(UTC), recorded.manifest
    return Collected(
        name=output.name,
        version=output.version,
        identity=output.identity,
        partition=output.partition,
        by=terms.by,
        why=terms.why,
        at=now.isoformat(timespec="seconds"),
        until=(now + terms.grace).isoformat(timespec="seconds"),
        bytes=size.bytes,
        files=size.files,
        data_path=data_path_elsewhere(recorded),
    )
