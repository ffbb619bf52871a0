"""The store: the paths and states of outputs, and the only way to make an output complete.

look      read the state of an output: done, being computed, failed, or something else
done      list the partitions of a version that are complete by their markers
claim     acquire the lease, claim the commit object, prepare the folder, mark the attempt, status RUNNING
publish   swap the commit object, which completes the output; then write the record and SUCCESS, which repeat it
fail      record the error, then FAILED

The data of an output may be below another prefix, that of the region which computes it. Its lease, status, record,
marks and commit object are below this store's prefix all the same, so that two regions never compute one output. When
it is complete, copies of commit object, record and status are written beside the data: the region has a whole output.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from marin_resources.configuration.settings import normalize_prefix
from marin_resources.storage import fault_points
from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as done_partitions
from marin_resources.storage.completion.partition_markers import CompletionMarker
from marin_resources.storage.control.conditions import require_conditions
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.files import folders_in
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.manifest import manifest
from marin_resources.storage.output import attempts, commit, record, status
from marin_resources.storage.output import region_copies as copies
from marin_resources.storage.output.claim import Claim
from marin_resources.storage.output.commit import Commit, State
from marin_resources.storage.output.late_writes import require_no_late_writes
from marin_resources.storage.output.leftovers import (
    StoreError,
    find_leftovers,
    make_folder,
    move_aside,
    refuse_folder_of_all,
    remove_temporaries,
)
from marin_resources.storage.output.notes import active_attempts as live
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Match, Observed, Output, Status
from marin_resources.types.partition_key import key_of
from marin_resources.types.places import is_same, is_within
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

LOOK_THREADS = 32
OVERTAKEN_TRIES = 5
"""Tries of recording a failure, while another program writes the record or the status."""
log = logging.getLogger(__name__)


class AlreadyDoneError(MarinError):
    """Another process has completed the output, or taken this attempt's number, in the meantime."""


class Store:
    def __init__(self, prefix: str, regions: Sequence[str] = ()) -> None:
        """`regions`: prefixes of other regions. What is complete there, and unknown here, is complete."""
        self.prefix = normalize_prefix(prefix)
        self.regions = tuple(region for region in map(normalize_prefix, regions) if not is_same(region, self.prefix))

    def locate(self, output: Output, data_prefix: str | None = None) -> str:
        """The path of the output below this prefix, or below that of a region. An absolute override stays as it is."""
        relative = output.relative()
        absolute = relative.startswith("/") or "://" in relative
        return relative if absolute else join(data_prefix or self.prefix, relative)

    def places(self, output: Output) -> list[str]:
        """The paths that the output may have: here, or complete in another region."""
        return list(dict.fromkeys([self.locate(output), *(self.locate(output, region) for region in self.regions)]))

    def data_path(self, output: Output) -> str:
        """The path of the output's data, or of its latest attempt's if it is not complete. Raises ControlFileError and
        UnavailableError."""
        observed = self._look(output)
        if observed.status is Status.SUCCESS:
            return observed.data_path
        path = observed.path
        return attempts.latest_data_path(path, attempts.latest_attempt(path)) or path

    def has_begun(self, output: Output) -> bool:
        """Whether an attempt at the output has begun. Raises ControlFileError and UnavailableError."""
        return attempts.latest_attempt(self.locate(output)) > 0

    def look(self, outputs: Iterable[Output]) -> dict[Output, Observed]:
        """Read the state of many outputs at once: three small files per output. Writes nothing.

        A damaged control file is noted in the state of its output alone.
        """
        requested = list(dict.fromkeys(outputs))
        if is_local(self.prefix) or len(requested) < 2:
            return {output: self._look_at(output) for output in requested}
        with ThreadPoolExecutor(min(LOOK_THREADS, len(requested))) as pool:
            return dict(zip(requested, pool.map(self._look_at, requested), strict=True))

    def done_partitions(self, whole: Output, listed: Iterable[str] | None = None) -> dict[str, CompletionMarker]:
        """The partitions of the version `whole` that are known to be complete, by two listings. Others may be too.

        `listed`: the result of `partitions`, if that is known.
        """
        folders = frozenset(self.partitions(whole) if listed is None else listed)
        return {
            key: done for key, done in done_partitions.marked_partitions(self.prefix, whole).items() if key in folders
        }

    def partitions(self, whole: Output) -> list[str]:
        """The keys that have a folder in the version `whole`, in whatever state, by one listing; sorted."""
        keys = (key_of(name) for name in folders_in(self.locate(whole)))
        return sorted(key for key in keys if key is not None)

    def mark_done(self, output: Output, record: Record) -> None:
        """Write the marker of a complete output that lacks it; a warning if the store does not take it."""
        if output.partition is not None and record.adopted:
            return  # so that listings read its record, which names the adoption
        try:
            if output.partition is None:
                marks.write_mark(self.prefix, marks.mark_of(output, record))
            else:
                done_partitions.mark_done(self.prefix, output, record)
        except (UnavailableError, OSError) as error:  # the output is complete without it; the next look writes it
            log.warning("the marker of %s could not be written: %s", output.label, error)

    def claim(
        self,
        output: Output,
        *,
        attempt: int,
        resumable: bool,
        run_id: str | None,
        stale_lease: str | None = None,
        data_prefix: str | None = None,
        reads: Sequence[str] = (),
        check_inputs: Callable[[], None] = lambda: None,
    ) -> Claim:
        """Become the writer of an output, whose data go below `data_prefix`; None: this prefix. `stale_lease`: see
        `lease.acquire`. `reads`: the paths that the function reads, which are needed from now on; `check_inputs` is
        called then, and its error ends the claim.

        Raises LeaseHeldError; AlreadyDoneError if it is complete by now or attempt `attempt` is taken; StoreError if
        the path holds files that are not ours; and SettingError for a store that ignores conditions.
        """
        path, data_path = self.locate(output), self.locate(output, data_prefix)
        if output.override is not None:
            refuse_folder_of_all(path, self.prefix)
        require_conditions(self.prefix if is_within(path, self.prefix) else path)
        held = lease.acquire(path, run_id, attempt=attempt, stale=stale_lease)
        try:
            fault_points.reach("lease taken")
            live.enter(self.prefix, path, held.holder, reads)
            check_inputs()
            return self._begin(output, path, data_path, attempt, resumable, run_id, held)
        except BaseException:  # on any error the lease must not outlive the claim
            self._release(held)
            raise

    def begin_again(self, claim: Claim, number: int, *, resumable: bool) -> Claim:
        """The claim for try `number` of its function. The leftovers of the last try are resumed from, or moved aside.

        What a process of an earlier try, which was taken for dead, writes from now on is a late write. Raises
        LeaseLostError if the claim is lost.
        """
        claim.lease.check()
        leftovers = find_leftovers(claim.data_path, attempted=True)
        if leftovers.names and not resumable:
            move_aside(claim.data_path, leftovers, f"{claim.attempt}-{number - 1}", claim.lease)
        kept = {file.name: file.stamp for file in leftovers.objects} if resumable else {}
        return dataclasses.replace(claim, number=number, kept=kept)

    def publish(self, claim: Claim, facts: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Make the output complete and release the claim.

        Raises LeaseLostError if the claim is lost, LateWriteError if an earlier attempt wrote into the data.
        """
        claim.lease.check()
        taken = manifest.take_manifest(claim.data_path)
        require_no_late_writes(claim.path, claim.data_path, claim.writer, claim.kept)
        fault_points.reach("manifest taken")
        self.publish_manifest(claim, taken, {**facts, **self.ending(claim), "result": dict(result)})

    def publish_manifest(self, claim: Claim, taken: manifest.Manifest, facts: Mapping[str, Any]) -> None:
        """Make the output complete with this manifest of its data, and release the claim. Raises LeaseLostError."""
        claim.lease.check()
        full = Record.from_dict({**facts, "manifest": taken.summary()})
        committed = commit.publish_commit(claim.path, claim.commit, taken, full)
        fault_points.reach("commit published")
        self.complete(claim.output, claim.path, committed)
        self._release(claim.lease)
        fault_points.reach("lease released")

    def fail(self, claim: Claim, facts: Mapping[str, Any], error: str, traceback: str) -> bool:
        """Record a failure and release the claim. Return False if the output is complete after all.

        That happens if the response to its publication was lost; the output then stays complete. Raises LeaseLostError
        if the claim is lost; then nothing is recorded.
        """
        ending = self.ending(claim)
        ended = {"outcome": "failed", "error": error, "traceback": traceback, "finished_at": ending["finished_at"]}
        ended |= {"spent": facts["spent"]} if "spent" in facts else {}
        try:
            claim.lease.check()
            failed = self._record_failure(claim, Record.from_dict({**facts, **ending, "error": error}))
            if failed:
                attempts.end_attempt(claim.path, claim.attempt, ended)
            return failed
        finally:
            self._release(claim.lease)

    def mark_stopped(self, output: Output, attempt: int, reason: str) -> None:
        """Record why an attempt stopped whose worker is gone. Do nothing if another attempt has begun.

        In a bucket the dead worker still holds the lease. A lease of this attempt may be taken over; if the worker is
        alive after all, it loses the lease and stops.
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
            seen = status.status_generation(path)  # before the fence is read, as in `_record_failure`
            now = commit.read_commit(path)
            if now is None or now.fence != attempt:
                return
            if now.state is State.COMMITTED and now.record is not None:
                remove_temporaries(path)  # the worker may have been killed while it wrote the record
                self.complete(output, path, now)
            elif status.read_status(path) is Status.RUNNING:
                status.replace_status(path, Status.FAILED, seen)
                attempts.end_stopped(path, attempt, reason)
        except ConflictError:
            return  # another attempt took over while this process was paused
        finally:
            held.release()

    def _look_at(self, output: Output) -> Observed:
        began_s = time.monotonic()
        try:
            return dataclasses.replace(self._look(output), read_at_s=began_s)
        except ControlFileError as error:
            return Observed(path=self.locate(output), damage=str(error))

    def _look(self, output: Output) -> Observed:
        """Raises ControlFileError."""
        path = self.locate(output)
        current_status = status.read_status(path)
        if current_status is None:
            # a worker acquires the lease before it writes a status, and may have died in between
            holder = lease.holder_of(path)
            elsewhere = copies.look_elsewhere(output, self.places(output)[1:]) if holder is None else None
            return elsewhere or Observed(path=path, holder=holder)
        recorded = commit.recorded(path, current_status)
        holder = None if current_status is Status.SUCCESS else lease.holder_of(path)
        kind = record.match(recorded, output) if current_status is Status.SUCCESS else Match.SAME
        return Observed(path=path, status=current_status, record=recorded or Record(), holder=holder, match=kind)

    def _begin(
        self,
        output: Output,
        path: str,
        data_path: str,
        attempt: int,
        resumable: bool,
        run_id: str | None,
        held: lease.Lease,
    ) -> Claim:
        remove_temporaries(path)
        before = self._refuse_done(output, path)
        latest = before.fence if before is not None and before.fence else attempts.latest_mark(path)
        if attempt <= latest:  # numbers of jobs that never began are skipped
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was claimed by another process.")
        listed = copies.list_copies(data_path) if data_path != path else []
        make_folder(data_path)
        leftovers = find_leftovers(data_path, attempted=latest > 0 or status.read_status(path) is not None)
        resumes = resumable and attempts.latest_identity(path, latest) == output.identity
        seen = status.status_generation(path)
        try:
            claimed = commit.claim_commit(
                path, fence=attempt, owner=held.holder.owner, identity=output.identity, over=before
            )
        except ConflictError:
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was claimed by another process.") from None
        fault_points.reach("commit claimed")
        copies.withdraw_copies(listed)
        if leftovers.names and not resumes:
            move_aside(data_path, leftovers, str(latest), held)
            fault_points.reach("leftovers moved")
        before_s = (marks if output.partition is None else done_partitions).remove_marks(self.prefix, output)
        began = datetime.now(UTC)
        facts = {"owner": held.holder.owner, "host": held.holder.host, "pid": held.holder.pid, "run_id": run_id}
        facts |= {} if data_path == path else {"data_path": data_path}
        facts |= {} if before_s is None else {"complete_before_s": before_s}
        attempts.begin_attempt(path, attempt, {**facts, "identity": output.identity, "started_at": began.isoformat()})
        fault_points.reach("attempt marked")
        held.check()
        try:
            status.replace_status(path, Status.RUNNING, seen)  # a claimant that was paused overwrites no newer status
        except ConflictError:
            raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was taken over by another process.") from None
        fault_points.reach("status running")
        return Claim(
            output=output,
            path=path,
            data_path=data_path,
            attempt=attempt,
            lease=held,
            commit=claimed,
            began=began,
            kept={file.name: file.stamp for file in leftovers.objects} if resumes else {},
        )

    def _record_failure(self, claim: Claim, failed: Record) -> bool:
        """Write record and status of a failure, if the fence is still ours. Return False if the output is complete.

        The generations are read before the fence, so a newer attempt's files are never overwritten.
        """
        for _ in range(OVERTAKEN_TRIES):
            seen = record.record_generation(claim.path), status.status_generation(claim.path)
            now = commit.read_commit(claim.path)
            if now is None or (now.fence, now.owner) != (claim.attempt, claim.commit.owner):
                raise LeaseLostError(f"Attempt {claim.attempt} at {claim.path!r} was taken over by another process.")
            if now.state is State.COMMITTED:
                self.complete(claim.output, claim.path, now)
                return False
            try:
                record.replace_record(claim.path, failed, seen[0])
                status.replace_status(claim.path, Status.FAILED, seen[1])
                return True
            except ConflictError:
                continue  # a Marin that starts now rewrites the records of all its steps
        raise LeaseLostError(
            f"Attempt {claim.attempt} at {claim.path!r} could not be recorded: another program keeps writing there."
        )

    def _refuse_done(self, output: Output, path: str) -> Commit | None:
        """The commit object of an incomplete output. If only its record or status is missing, write them and raise."""
        seen = self._look(output)
        if seen.done:
            raise AlreadyDoneError(f"{path!r} is complete by now.")
        if seen.match is Match.OTHER:
            raise StoreError(other_version_message(output, path))
        committed = commit.read_commit(path)
        if committed is not None and committed.state is State.COMMITTED and committed.record is not None:
            self.complete(output, path, committed)
            return self._refuse_done(output, path)
        return committed

    def complete(self, output: Output, path: str, committed: Commit) -> None:
        """Write what follows from the commit object of a complete output. Every process writes the same."""
        assert committed.record is not None
        if (data_path := copies.copies_path(committed.record)) is not None:
            copies.write_copies(data_path, committed)
            fault_points.reach("region complete")
        record.write_record(path, committed.record)
        fault_points.reach("record written")
        status.write_status(path, Status.SUCCESS)
        fault_points.reach("status success")
        self.mark_done(output, committed.record)
        ended = {"outcome": "success", "finished_at": committed.record.finished_at}
        attempts.end_attempt(path, committed.fence, ended)
        fault_points.reach("attempt ended")

    def _release(self, held: lease.Lease) -> None:
        held.release()
        live.leave(self.prefix, held.holder.owner)

    def ending(self, claim: Claim) -> dict[str, Any]:
        """The facts of an attempt that ends now, for its record."""
        now = datetime.now(UTC)
        return {
            "identity": claim.output.identity,
            **({} if claim.data_path == claim.path else {"data_path": claim.data_path}),
            "attempt": claim.attempt,
            "host": claim.lease.holder.host,
            "started_at": claim.began.isoformat(),
            "finished_at": now.isoformat(),
            "duration_s": round((now - claim.began).total_seconds(), 3),
        }


def other_version_message(output: Output, path: str) -> str:
    """The error sentence for a path that holds another version's output."""
    reason = "the overridden path" if output.override else "six digits that collide"
    return (
        f"{path!r} holds a complete output of another version of {output.label!r} ({reason}). "
        "Give the step another name or override_output_path, or move that output away."
    )
