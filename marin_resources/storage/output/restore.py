"""Bring a collected output back: its data are where they were, so it is complete again as soon as its status is.

restore_output   of one output; what a run does when it reaches it, and `marin gc --restore`
require_inputs   what a worker does before its function is called: all inputs are complete, or are brought back
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output import commit, record, status
from marin_resources.storage.output.commit import State
from marin_resources.storage.output.notes.collection import read_collected, remove_collected
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Status
from marin_resources.types.places import relative_to

THREADS = 32
POLL_S = 0.2


class InputGoneError(RuntimeError):
    """An input was complete when its reader was submitted and has been removed since: one sentence with its path."""


def require_inputs(store: Store, paths: Sequence[str]) -> None:
    """Restore the outputs at these paths that were collected. Call it while the lease of their reader is held and its
    attempt is entered. Raises InputGoneError, ControlFileError and UnavailableError.
    """
    if is_local(store.prefix) or len(paths) < 2:
        statuses = list(map(status.read_status, paths))
    else:
        with ThreadPoolExecutor(min(THREADS, len(paths))) as pool:
            statuses = list(pool.map(status.read_status, paths))
    for path, input_status in zip(paths, statuses, strict=True):
        if input_status is not Status.SUCCESS and not restore_output(store, path):
            raise InputGoneError(
                f"the input {path!r} was complete when this step was submitted, and has been removed since"
            )


def restore_output(store: Store, path: str) -> bool:
    """Make the output at `path` complete again, if it was collected; return whether it is complete. Waits for another
    process that collects or restores it. Raises ControlFileError and UnavailableError.
    """
    relative, watch, stale = relative_to(path, [store.prefix]), LeaseWatch(), None
    while relative is not None and status.read_status(path) is None:
        note = read_collected(store.prefix, relative)
        if note is None or (note.purge is not None and not _is_committed(path)):
            break
        looked_at_s = watch.begin()
        try:
            held = lease.acquire(path, None, stale=stale)
        except LeaseHeldError as error:
            stale = error.holder.generation if watch.is_stale(error.holder, looked_at_s) else None
            if stale is None:
                time.sleep(POLL_S)
            continue
        try:
            _restore(store, path, relative)
        finally:
            held.release()
        break
    return status.read_status(path) is Status.SUCCESS


def _restore(store: Store, path: str, relative: str) -> None:
    """Restore the output. Call it under the output's lease."""
    note, committed = read_collected(store.prefix, relative), commit.read_commit(path)
    if note is None or (committed is not None and committed.state is State.CLAIMED):
        return  # its data are removed, or an attempt computes it again
    if committed is not None and committed.record is not None:
        store.complete(note.output, path, committed)
    elif note.purge is None and record.read_record(path) is not None:  # Marin's, which has no commit object
        status.write_status(path, Status.SUCCESS)
    else:
        return
    remove_collected(store.prefix, note)


def _is_committed(path: str) -> bool:
    """Whether a purge that was killed has removed nothing yet."""
    committed = commit.read_commit(path)
    return committed is not None and committed.state is State.COMMITTED
