"""The store: where outputs lie, what state they are in, and the only way to make one complete.

look      what lies at an output's path: done, being made, failed, or something else
claim     take the lease, take over the commit object, make the folder ready, mark the attempt, status RUNNING
publish   swap the commit object, which is the moment of truth; then record and SUCCESS, which tell of it
fail      record the error, then FAILED
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_resources.output import Match, Observed, Output, Status
from marin_resources.settings import normalize_prefix
from marin_resources.storage import fault_points
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.manifest import manifest
from marin_resources.storage.output import attempts, commit, record, status
from marin_resources.storage.output.commit import Commit, CommitError, State
from marin_resources.storage.output.leftovers import StoreError, find_leftovers, move_aside, remove_temporaries
from marin_resources.storage.output.record import RecordError
from marin_resources.storage.output.status import StatusError
from marin_resources.storage.paths import is_local, join

LOOK_THREADS = 32
UNREADABLE = (RecordError, StatusError, CommitError)
"""What a look may raise of a control file that cannot be read. Each is a sentence."""
OVERTAKEN_TRIES = 5


class AlreadyDoneError(RuntimeError):
    """Someone else completed the output in the meantime."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to write one output: a lease, and a fence that nobody else has."""

    output: Output
    path: str
    attempt: int
    """The fence: it grows with every claim of this output."""
    lease: lease.Lease
    commit: Commit
    began: datetime


class Store:
    def __init__(self, prefix: str) -> None:
        self.prefix = normalize_prefix(prefix)

    def locate(self, output: Output, region: str | None = None) -> str:
        """Where the output lies, or will. Regions all map to the one prefix so far."""
        relative = output.relative()
        return relative if relative.startswith("/") or "://" in relative else join(self.prefix, relative)

    def look(self, outputs: Iterable[Output]) -> dict[Output, Observed]:
        """What is there now, for many outputs at once. Reads three small files an output and writes nothing."""
        wanted = list(dict.fromkeys(outputs))
        if is_local(self.prefix) or len(wanted) < 2:
            return {output: self._look(output) for output in wanted}
        with ThreadPoolExecutor(min(LOOK_THREADS, len(wanted))) as pool:
            return dict(zip(wanted, pool.map(self._look, wanted), strict=True))

    def claim(
        self, output: Output, *, attempt: int, resumable: bool, run_id: str | None, stale_lease: str | None = None
    ) -> Claim:
        """Become the writer of an output. `stale_lease`: see `lease.acquire`.

        Raises LeaseHeldError, AlreadyDoneError if it is complete by now or attempt `attempt` is taken, and StoreError
        if what lies at the path is not ours to touch.
        """
        path = self.locate(output)
        held = lease.acquire(path, run_id, attempt=attempt, stale=stale_lease)
        try:
            fault_points.reach("lease taken")
            return self._begin(output, path, attempt, resumable, run_id, held)
        except BaseException:  # whatever it is, the lease must not outlive the claim
            held.release()
            raise

    def publish(self, claim: Claim, facts: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Make the output complete and give the claim up. Raises LeaseLostError if it is not ours any more."""
        claim.lease.check()
        taken = manifest.take_manifest(claim.path)
        fault_points.reach("manifest taken")
        full = {**facts, **self._ending(claim), "result": dict(result), "manifest": taken.summary()}
        claim.lease.check()
        committed = commit.publish_commit(claim.path, claim.commit, taken, full)
        fault_points.reach("commit published")
        _tell(claim.path, committed)
        attempts.end_attempt(claim.path, claim.attempt, {"outcome": "success", "finished_at": full["finished_at"]})
        fault_points.reach("attempt ended")
        claim.lease.release()
        fault_points.reach("lease released")

    def fail(self, claim: Claim, facts: Mapping[str, Any], error: str, traceback: str) -> bool:
        """Record why the output is not complete, and give the claim up. False if it is complete after all.

        It is if the answer to its publication was lost, and then stays as it is. Raises LeaseLostError if the claim is
        not ours any more; then the failure is nobody's business.
        """
        ending = self._ending(claim)
        told = {"outcome": "failed", "error": error, "traceback": traceback, "finished_at": ending["finished_at"]}
        try:
            claim.lease.check()
            failed = self._record_failure(claim, {**facts, **ending, "error": error})
            if failed:
                attempts.end_attempt(claim.path, claim.attempt, told)
            return failed
        finally:
            claim.lease.release()

    def mark_stopped(self, output: Output, attempt: int, reason: str) -> None:
        """Say of an attempt whose worker is gone why it stopped; does nothing if someone else works on by now.

        In a bucket the dead worker's lease still stands. It is of this attempt, so it may be taken over; if the worker
        lives after all, it loses its lease and stops.
        """
        path = self.locate(output)
        holder = lease.holder_of(path)
        stale = holder.generation if holder is not None and holder.attempt == attempt else None
        if stale is None and attempts.latest_attempt(path) != attempt:
            return
        try:
            held = lease.acquire(path, None, attempt=attempt, stale=stale)
        except LeaseHeldError:
            return
        try:
            seen = status.status_generation(path)  # before the fence is looked at, as in `_record_failure`
            now = commit.read_commit(path)
            if now is None or now.fence != attempt:
                return
            if now.state is State.COMMITTED and now.record is not None:
                _tell(path, now)
            elif status.read_status(path) is Status.RUNNING:
                status.replace_status(path, Status.FAILED, seen)
                _note_stopped(path, attempt, reason)
        except ConflictError:
            return  # it was taken over while this process was held up
        finally:
            held.release()

    def _look(self, output: Output) -> Observed:
        path = self.locate(output)
        found = status.read_status(path)
        if found is None:  # a worker takes the lease before it writes a status, and may have died in between
            return Observed(path=path, holder=lease.holder_of(path))
        recorded = _recorded(path, found)
        holder = None if found is Status.SUCCESS else lease.holder_of(path)
        kind = record.match(recorded, output) if found is Status.SUCCESS else Match.SAME
        return Observed(path=path, status=found, record=recorded, holder=holder, match=kind)

    def _begin(
        self, output: Output, path: str, attempt: int, resumable: bool, run_id: str | None, held: lease.Lease
    ) -> Claim:
        remove_temporaries(path)
        before = self._refuse_done(output, path)
        latest = before.fence if before is not None and before.fence else attempts.latest_mark(path)
        if attempt <= latest:  # numbers of jobs that never began are skipped
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was made by someone else.")
        leftovers = find_leftovers(path, latest)
        seen = status.status_generation(path)
        try:
            claimed = commit.claim_commit(
                path, fence=attempt, owner=held.holder.owner, identity=output.identity, over=before
            )
        except ConflictError:
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was made by someone else.") from None
        fault_points.reach("commit claimed")
        if leftovers.names and not (resumable and attempts.latest_identity(path, latest) == output.identity):
            move_aside(path, leftovers, latest, held)
            fault_points.reach("leftovers moved")
        began = datetime.now(UTC)
        who = {"owner": held.holder.owner, "host": held.holder.host, "pid": held.holder.pid, "run_id": run_id}
        attempts.begin_attempt(path, attempt, {**who, "identity": output.identity, "started_at": began.isoformat()})
        fault_points.reach("attempt marked")
        held.check()
        try:
            status.replace_status(path, Status.RUNNING, seen)  # a claimant that was held up overwrites no newer status
        except ConflictError:
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was taken over by another.") from None
        fault_points.reach("status running")
        return Claim(
            output=output,
            path=path,
            attempt=attempt,
            lease=held,
            commit=claimed,
            began=began,
        )

    def _record_failure(self, claim: Claim, failed: Mapping[str, Any]) -> bool:
        """Write record and status of a failure over what was there while the fence was ours; False if it is complete.

        The generations are read before the fence is looked at, so a newer attempt's files are never overwritten.
        """
        for _ in range(OVERTAKEN_TRIES):
            seen = record.record_generation(claim.path), status.status_generation(claim.path)
            now = commit.read_commit(claim.path)
            if now is None or (now.fence, now.owner) != (claim.attempt, claim.commit.owner):
                raise LeaseLostError(f"Attempt {claim.attempt} at {claim.path!r} was taken over by another.")
            if now.state is State.COMMITTED:
                _tell(claim.path, now)
                return False
            try:
                record.replace_record(claim.path, failed, seen[0])
                status.replace_status(claim.path, Status.FAILED, seen[1])
                return True
            except ConflictError:
                continue  # a Marin that was started meanwhile rewrites the records of all its steps
        raise LeaseLostError(f"Attempt {claim.attempt} at {claim.path!r} could not be recorded: others write there.")

    def _refuse_done(self, output: Output, path: str) -> Commit | None:
        """The commit object of an output that is not complete. One that only lacks its record or status gets them."""
        seen = self._look(output)
        if seen.done:
            raise AlreadyDoneError(f"{path!r} is complete by now.")
        if seen.match is Match.OTHER:
            raise StoreError(other_version_sentence(output, path))
        found = commit.read_commit(path)
        if found is not None and found.state is State.COMMITTED and found.record is not None:
            _tell(path, found)
            return self._refuse_done(output, path)
        return found

    def _ending(self, claim: Claim) -> dict[str, Any]:
        now = datetime.now(UTC)
        return {
            "identity": claim.output.identity,
            "attempt": claim.attempt,
            "host": claim.lease.holder.host,
            "started_at": claim.began.isoformat(),
            "finished_at": now.isoformat(),
            "duration_s": round((now - claim.began).total_seconds(), 3),
        }


def _note_stopped(path: str, attempt: int, reason: str) -> None:
    """Add how an attempt ended, unless its worker has said so itself before it went."""
    try:
        marked = attempts.read_attempt(path, attempt)
    except FileNotFoundError:
        return  # it died before it had put its mark, and has no history
    if "outcome" not in marked:
        ended = {"outcome": "stopped", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
        attempts.end_attempt(path, attempt, ended)


def _recorded(path: str, found: Status) -> dict[str, Any] | None:
    """The record of an output; ours is in the commit, if Marin has rewritten it, as it does when it starts."""
    recorded = record.read_record(path)
    if found is Status.SUCCESS and (recorded is None or "format_version" not in recorded):
        committed = commit.read_commit(path)
        if committed is not None and committed.record is not None:
            return dict(committed.record)
    return recorded


def _tell(path: str, committed: Commit) -> None:
    """Write record and status of an output that is committed. Whoever does it writes the same."""
    assert committed.record is not None
    record.write_record(path, committed.record)
    fault_points.reach("record written")
    status.write_status(path, Status.SUCCESS)
    fault_points.reach("status success")


def other_version_sentence(output: Output, path: str) -> str:
    """What to say where another version's output lies at an output's path."""
    what = "the overridden path" if output.override else "six digits that collide"
    return (
        f"{path!r} holds a complete output of another version of {output.name!r} ({what}). "
        "Give the step another name or override_output_path, or move that output away."
    )
