"""The store: where outputs lie, what state they are in, and the only way to make one complete.

look      what lies at an output's path: done, being made, failed, or something else
claim     take the lease, make the folder ready, mark the attempt, status RUNNING
publish   manifest, then record, then SUCCESS: a reader sees an output whole or not at all
fail      record the error, then FAILED
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_resources.output import Match, Observed, Output, Status
from marin_resources.settings import normalize_prefix
from marin_resources.storage import attempts, lease, manifest, record, status
from marin_resources.storage.files import filesystem_of, is_local, join

LOOK_THREADS = 32


class StoreError(RuntimeError):
    """An output's path cannot be used: one sentence with the path and the way out."""


class AlreadyDoneError(RuntimeError):
    """Someone else completed the output in the meantime."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to write one output, for as long as the lease is held."""

    output: Output
    path: str
    attempt: int
    """The fence: it grows with every claim of this output."""
    lease: lease.LocalLease
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

    def claim(self, output: Output, *, attempt: int, resumable: bool, run_id: str | None) -> Claim:
        """Become the writer of an output.

        Raises LeaseHeldError, AlreadyDoneError if it is complete by now or attempt `attempt` is taken, and StoreError
        if what lies at the path is not ours to touch.
        """
        path = self.locate(output)
        held = lease.acquire(path, run_id)
        try:
            self._refuse_done(output, path)
            self._make_ready(output, path, resumable)
            began = datetime.now(UTC)
            who = {"owner": held.holder.owner, "host": held.holder.host, "pid": held.holder.pid, "run_id": run_id}
            try:
                attempts.begin_attempt(
                    path, attempt, {**who, "identity": output.identity, "started_at": began.isoformat()}
                )
            except FileExistsError:
                raise AlreadyDoneError(f"Attempt {attempt} at {path!r} was made by someone else.") from None
            status.write_status(path, Status.RUNNING)
        except BaseException:  # whatever it is, the lease must not outlive the claim
            held.release()
            raise
        return Claim(output=output, path=path, attempt=attempt, lease=held, began=began)

    def publish(self, claim: Claim, facts: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Make the output complete and give the claim up. Raises LeaseLostError if it is not ours any more."""
        claim.lease.check()
        taken = manifest.take_manifest(claim.path)
        manifest.write_manifest(claim.path, taken)
        full = {**facts, **self._ending(claim), "result": dict(result), "manifest": taken.summary()}
        claim.lease.check()
        record.write_record(claim.path, full)
        claim.lease.check()
        status.write_status(claim.path, Status.SUCCESS)
        attempts.end_attempt(claim.path, claim.attempt, {"outcome": "success", "finished_at": full["finished_at"]})
        claim.lease.release()

    def fail(self, claim: Claim, facts: Mapping[str, Any], error: str, traceback: str) -> None:
        """Record why the output is not complete, and give the claim up. What is SUCCESS by now stays as it is."""
        claim.lease.check()
        if status.read_status(claim.path) is Status.SUCCESS:
            claim.lease.release()
            return
        ending = self._ending(claim)
        record.write_record(claim.path, {**facts, **ending, "error": error})
        status.write_status(claim.path, Status.FAILED)
        told = {"outcome": "failed", "error": error, "traceback": traceback, "finished_at": ending["finished_at"]}
        attempts.end_attempt(claim.path, claim.attempt, told)
        claim.lease.release()

    def mark_stopped(self, output: Output, attempt: int, reason: str) -> None:
        """Say of an attempt whose worker is gone why it stopped; does nothing if someone else works on by now."""
        path = self.locate(output)
        if attempts.latest_attempt(path) != attempt:
            return
        try:
            held = lease.acquire(path, None)
        except lease.LeaseHeldError:
            return
        try:
            if status.read_status(path) is Status.RUNNING and attempts.latest_attempt(path) == attempt:
                status.write_status(path, Status.FAILED)
                ended = {"outcome": "stopped", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
                attempts.end_attempt(path, attempt, ended)
        finally:
            held.release()

    def _look(self, output: Output) -> Observed:
        path = self.locate(output)
        found = status.read_status(path)
        if found is None:
            return Observed(path=path)
        recorded = record.read_record(path)
        holder = None if found is Status.SUCCESS else lease.holder_of(path)
        kind = record.match(recorded, output) if found is Status.SUCCESS else Match.SAME
        return Observed(path=path, status=found, record=recorded, holder=holder, match=kind)

    def _refuse_done(self, output: Output, path: str) -> None:
        seen = self._look(output)
        if seen.done:
            raise AlreadyDoneError(f"{path!r} is complete by now.")
        if seen.match is Match.OTHER:
            raise StoreError(other_version_sentence(output, path))

    def _make_ready(self, output: Output, path: str, resumable: bool) -> None:
        """Begin with an empty folder, or with what the last attempt left if it can be gone on with."""
        leftovers = _data_names(path)
        if not leftovers:
            return
        latest = attempts.latest_attempt(path)
        if latest == 0:
            raise StoreError(
                f"{path!r} holds {leftovers[0]!r} and no mark of an attempt of ours, so it is not touched. "
                "Move what lies there to another place, or give the step another name."
            )
        if not resumable or attempts.read_attempt(path, latest).get("identity") != output.identity:
            _move_aside(path, leftovers, latest)

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


def other_version_sentence(output: Output, path: str) -> str:
    """What to say where another version's output lies at an output's path."""
    what = "the overridden path" if output.override else "six digits that collide"
    return (
        f"{path!r} holds a complete output of another version of {output.name!r} ({what}). "
        "Give the step another name or override_output_path, or move that output away."
    )


def _data_names(path: str) -> list[str]:
    """Names directly below `path` that are not control files."""
    fs, root = filesystem_of(path)
    names = [name.rstrip("/").rsplit("/", 1)[-1] for name in fs.ls(root, detail=False)]
    kept = [name for name in names if name not in _CONTROL]
    # Of `.marin` everything stays but what belongs to the data: the shards noted as finished.
    return sorted(kept + ([".marin/shards"] if fs.exists(join(root, ".marin/shards")) else []))


def _move_aside(path: str, names: list[str], attempt: int) -> None:
    fs, root = filesystem_of(path)
    aside = join(root, ".marin/aside", str(attempt))
    fs.makedirs(aside, exist_ok=True)
    for name in names:
        fs.mv(join(root, name), join(aside, os.path.basename(name)), recursive=True)


_CONTROL = {status.NAME, record.NAME, lease.NAME, ".marin"}
