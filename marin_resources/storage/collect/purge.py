"""Remove the data of a collected output whose grace time is over.

    1 the record is kept as history
    2 the note names its purger and its commit: from here on it cannot be restored
    3 the commit object is claimed, as by an attempt: it is committed no more, and no writer that is late can publish
    4 a mark records it: no attempt resumes from what is left
    5 data, then control files, then the commit object and the note are removed
    6 the lease is released and removed

All of it under the output's lease; in a bucket each object is removed in the generation that was listed before 3, so
what a later attempt writes stays. A process that is killed anywhere leaves a note, by which the next purge resumes. A
run in between computes the output again, and the next purge finds that the commit object is another's.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from marin_resources.storage import fault_points
from marin_resources.storage.collect.contents import Contents, list_contents, remove_contents, remove_folders
from marin_resources.storage.collect.data_location import copies_at
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease.lease import release_for_good
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError, LeaseLostError
from marin_resources.storage.lease.wait import acquire_unless_live
from marin_resources.storage.output import attempts, commit, status
from marin_resources.storage.output.commit import Commit, State
from marin_resources.storage.output.notes.collection import (
    Collected,
    Purge,
    read_collected,
    remove_collected,
    replace_collected,
)
from marin_resources.storage.output.notes.history import keep_record
from marin_resources.storage.output.notes.job_notes import newest_note_above_fence
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Status


def purge(store: Store, note: Collected) -> int:
    """Remove a collected output for good; return the bytes that were removed. Whether its grace time is over, and
    nothing needs it, is for the caller to know, who has read this very note before he looked.

    Raises KeptError, also if it was restored and collected again since, ControlFileError and UnavailableError.
    """
    path = store.locate(note.output)
    try:
        held = acquire_unless_live(path)
    except LeaseHeldError as error:
        raise KeptError(f"its lease is held by {error.holder.describe()}") from None
    removed = False
    try:
        removed_bytes = _purge(store, note, path, held)
        removed = True
        return removed_bytes
    except (ConflictError, LeaseLostError):
        raise KeptError("another program writes there") from None
    finally:
        if removed:
            release_for_good(held, path)
            for place in _places(note, path):
                remove_folders(place)
        else:
            held.release()


def _purge(store: Store, looked: Collected, path: str, held: Lease) -> int:
    note = read_collected(store.prefix, looked.relative)
    if note is None:
        raise KeptError("it was restored, or removed by another process")
    if note.generation != looked.generation:
        raise KeptError("it was restored and collected again, or another purge has begun")
    current_status, now = status.read_status(path), commit.read_commit(path)
    if current_status is not None or not _is_ours(note, now):
        remove_collected(store.prefix, note)
        raise KeptError("it is complete again" if current_status is Status.SUCCESS else "an attempt computes it again")
    contents = _contents(path, note)
    if now is None or now.state is State.COMMITTED:
        note, now = _claim(store, note, path, now, held)
    removed_bytes = remove_contents(contents, held)
    fault_points.reach("data removed")
    held.check()
    attempts.remove_mark(path, now.fence)
    control.delete(join(path, commit.NAME), expected=now.generation)
    fault_points.reach("commit removed")
    remove_collected(store.prefix, note)
    return removed_bytes


def _is_ours(note: Collected, now: Commit | None) -> bool:
    """Whether the commit object is that of the collected output, or the claim of a purge that was killed."""
    if now is None:
        return True
    if now.state is State.CLAIMED:
        return note.purge is not None and now.owner == note.purge.owner
    return note.purge is None or now.owner == note.purge.of


def _contents(path: str, note: Collected) -> list[Contents]:
    """The files to remove, as they are listed now. Raises KeptError for files that are not the output's own."""
    job = newest_note_above_fence(path)
    if job is not None and job.open:
        raise KeptError(f"cluster job {job.job} is submitted to compute it")
    copies_at(note.data_path)
    return [list_contents(place) for place in _places(note, path)]


def _places(note: Collected, path: str) -> list[str]:
    """The paths that its files are below; the home last."""
    return [path] if note.data_path is None else [note.data_path, path]


def _claim(store: Store, note: Collected, path: str, now: Commit | None, held: Lease) -> tuple[Collected, Commit]:
    """Steps 1 to 4."""
    recorded = commit.recorded(path, Status.SUCCESS)
    if recorded is not None:
        keep_record(store.prefix, note.relative, recorded)
    owner = held.holder.owner
    note = replace_collected(
        store.prefix, dataclasses.replace(note, purge=Purge(owner=owner, of=now.owner if now else ""))
    )
    fault_points.reach("purge noted")
    held.check()
    fence = max(now.fence if now else 0, attempts.latest_mark(path)) + 1
    claimed = commit.claim_commit(path, fence=fence, owner=owner, identity=note.identity, over=now)
    fault_points.reach("purge claimed")
    at = datetime.now(UTC).isoformat()
    holder = {"owner": owner, "host": held.holder.host, "pid": held.holder.pid}
    attempts.begin_attempt(path, fence, {**holder, "outcome": "purged", "started_at": at, "finished_at": at})
    fault_points.reach("purge marked")
    return note, claimed
