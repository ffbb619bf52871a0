"""Withdraw a complete output, so that the next run computes it again. Its data stay, and that run moves them aside.

    1 its record is kept as history
    2 the copies in the region of its data are withdrawn, and its marker is removed
    3 the mark of an attempt records it: no later one resumes from the data
    4 its status is removed, by its generation: from here on no attempt begins that reads it
    5 if one is at work that does, the status is written again, and the output is kept
    6 the commit object is claimed by that attempt: it is committed no more

All of it under the output's lease. A process that is killed before 6 has withdrawn nothing: a run writes the status
again, and computes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from marin_resources.storage import fault_points
from marin_resources.storage.collect.data_location import copies_at, data_path_elsewhere
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.collect.withdraw import record_of_complete
from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as done_partitions
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError, LeaseLostError
from marin_resources.storage.lease.wait import acquire_unless_live
from marin_resources.storage.output import attempts, commit, status
from marin_resources.storage.output.notes.active_attempts import live_attempts
from marin_resources.storage.output.notes.history import keep_record
from marin_resources.storage.output.region_copies import withdraw_copies
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, Status
from marin_resources.types.places import is_within
from marin_resources.types.record import Record

OUTCOME = "withdrawn"
"""Outcome of the attempt whose mark invalidates the output's data."""


def invalidate_output(store: Store, output: Output, *, by: str, why: str) -> None:
    """Withdraw a complete output. Raises KeptError, ControlFileError and UnavailableError."""
    path = store.locate(output)
    try:
        held = acquire_unless_live(path)
    except LeaseHeldError as error:
        raise KeptError(f"its lease is held by {error.holder.describe()}") from None
    try:
        _withdraw(store, output, path, held, {"by": by, "why": why})
    except (ConflictError, LeaseLostError):
        raise KeptError("another program writes there") from None
    finally:
        held.release()


def _withdraw(store: Store, output: Output, path: str, held: Lease, request: dict[str, str]) -> None:
    seen, recorded = status.status_generation(path), record_of_complete(path, output)
    now = commit.read_commit(path)
    copies = copies_at(data_path_elsewhere(recorded))
    keep_record(store.prefix, output.relative(), recorded)
    fault_points.reach("history kept")
    withdraw_copies(copies)
    held.check()
    (marks if output.partition is None else done_partitions).remove_marks(store.prefix, output)
    held.check()
    if seen is None:
        raise KeptError("it is not complete any more")
    fence = max(now.fence if now is not None else 0, attempts.latest_mark(path)) + 1
    at = datetime.now(UTC).isoformat()
    holder = {"owner": held.holder.owner, "host": held.holder.host, "pid": held.holder.pid}
    attempts.begin_attempt(path, fence, {**holder, **request, "outcome": OUTCOME, "started_at": at, "finished_at": at})
    fault_points.reach("attempt withdrawn")
    control.delete(join(path, status.NAME), expected=seen)
    fault_points.reach("status taken away")
    _require_no_reader(store, path, recorded)
    commit.claim_commit(path, fence=fence, owner=held.holder.owner, identity=output.identity, over=now)
    fault_points.reach("commit taken back")


def _require_no_reader(store: Store, path: str, recorded: Record) -> None:
    """Raises KeptError if an attempt at work reads the output, which is complete again then."""
    places = {path, recorded.data_path or path}
    for attempt in live_attempts(store.prefix):
        if any(is_within(read, place) for read in attempt.reads for place in places):
            status.write_status(path, Status.SUCCESS)
            raise KeptError(f"attempt {attempt.attempt} at {attempt.path!r} reads it, {attempt.holder.describe()}")
