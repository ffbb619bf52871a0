"""Take an adoption back: the output is missing again. The data where they are stay as they are.

    1 the status is removed     readers no longer see a complete output; a run would still write it again
    2 the commit is replaced    by the claim of an attempt that publishes nothing: the adoption is undone
    3 the record is removed
    4 its marker is removed     which plans go by
    5 the mark of that attempt  records the adoption, the person and the time

All of it under the output's lease, so no run is at work. A process that is killed before 2 has undone nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from marin_resources.storage import fault_points
from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.adoption.lease_wait import acquire_or_refuse
from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as partitions
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease import lease
from marin_resources.storage.output import attempts, commit, record, status
from marin_resources.storage.output.commit import Commit, State
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, Status
from marin_resources.types.record import Adoption


def find_adopted(store: Store, output: Output) -> Adoption:
    """The adoption of the output: its source and its reason. Raises AdoptionError if it is not adopted."""
    path = store.locate(output)
    return _adopted(path, output, commit.read_commit(path))


def undo(store: Store, output: Output, *, by: str, report: Callable[[str], None] = lambda line: None) -> Adoption:
    """Take the adoption of the output back; return what was undone. Raises as `find_adopted`, and AdoptionError if
    another process holds its lease."""
    path = store.locate(output)
    find_adopted(store, output)  # before a lease is written anywhere
    held = acquire_or_refuse(lambda stale: lease.acquire(path, None, stale=stale), output.label, report)
    try:
        return _withdraw(store, path, output, held, by)
    except ConflictError:
        raise AdoptionError(f"Another program writes at {path!r}. Try again when it has ended.") from None
    finally:
        held.release()


def _withdraw(store: Store, path: str, output: Output, held: lease.Lease, by: str) -> Adoption:
    now = commit.read_commit(path)
    adopted = _adopted(path, output, now)
    before = now.fence if now is not None and now.fence else attempts.latest_mark(path)
    seen = status.status_generation(path), record.record_generation(path)
    held.check()
    _delete(join(path, status.NAME), seen[0])
    fault_points.reach("status withdrawn")
    held.check()
    commit.claim_commit(path, fence=before + 1, owner=held.holder.owner, identity=output.identity, over=now)
    fault_points.reach("commit withdrawn")
    _delete(join(path, record.NAME), seen[1])
    fault_points.reach("record withdrawn")
    (marks if output.partition is None else partitions).remove_marks(store.prefix, output)
    author = {"owner": held.holder.owner, "host": held.holder.host, "pid": held.holder.pid, "by": by}
    at = datetime.now(UTC).isoformat()
    undone = {"outcome": "undone", "started_at": at, "finished_at": at, "undone": adopted.to_dict()}
    attempts.begin_attempt(path, before + 1, {**author, "identity": output.identity, **undone})
    return adopted


def _adopted(path: str, output: Output, now: Commit | None) -> Adoption:
    """The adoption in the commit object, or in the record if readers still read that alone."""
    if now is not None and now.state is State.COMMITTED:
        current_record = now.record
    else:
        current_record = record.read_record(path) if status.read_status(path) is Status.SUCCESS else None
    adopted = current_record.adopted if current_record is not None else None
    if adopted is None:
        raise AdoptionError(f"{output.label!r} is not adopted, so there is nothing to undo at {path!r}.")
    return adopted


def _delete(path: str, generation: str | None) -> None:
    if generation is not None:
        control.delete(path, expected=generation)
