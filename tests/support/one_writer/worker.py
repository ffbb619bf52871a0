"""One of the competing processes: looks, watches, claims, writes and publishes through the real store."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.files import exists, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output import attempts
from marin_resources.storage.output.late_writes import LateWriteError
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store
from marin_resources.storage.paths import is_local, join
from marin_resources.storage.upload.writer import writing_as
from marin_resources.types.output import Holder, Output
from one_writer import plan
from one_writer.faults import Faults
from one_writer.journal import Journal

POLLS_IN_A_LIFE = 10


@dataclass(frozen=True, kw_only=True)
class Worker:
    store: Store
    journal: Journal
    chance: random.Random
    faults: Faults
    ttl_s: float
    deaf: bool
    """Does not stop itself when its lease is lost: it must be held off all the same."""

    def complete(self, outputs: list[Output]) -> None:
        """Returns when all of them are done, by whomever."""
        left = list(outputs)
        while left:
            output = self.chance.choice(left)
            try:
                if self.try_one(output):
                    left.remove(output)
            except UnavailableError as error:
                self.journal.note("unavailable", output.name, error=str(error))

    def try_one(self, output: Output) -> bool:
        """Whether it is done. Makes it, if nobody else does."""
        seen = self.store.look([output])[output]
        if seen.done:
            return True
        stale = None
        if seen.holder is not None:
            stale = self.watch(output, seen.path, seen.holder)
            if stale is None:
                return False
        attempt = attempts.latest_attempt(seen.path) + 1
        resumes = plan.kind_of(output.name).resumes
        try:
            claim = self.store.claim(output, attempt=attempt, resumable=resumes, run_id=None, stale_lease=stale)
        except (LeaseHeldError, AlreadyDoneError, LeaseLostError) as refused:
            self.journal.note("refused", output.name, attempt, why=type(refused).__name__)
            self.rest()
            return False
        self.make(claim)
        return False

    def rest(self) -> None:
        time.sleep(self.ttl_s / POLLS_IN_A_LIFE)

    def watch(self, output: Output, path: str, holder: Holder) -> str | None:
        """The generation of a lease whose holder is gone; None when something has changed."""
        watch, began_s, beat = LeaseWatch(), time.monotonic(), heartbeat_of(path)
        while time.monotonic() < began_s + 3 * self.ttl_s:
            self.rest()
            looked_at_s = watch.begin()
            now = lease.holder_of(path)
            if now is None or now.owner != holder.owner:
                return None
            if watch.is_stale(now, looked_at_s):
                self.journal.note("stale", output.name, now.attempt)
                return now.generation
            if self.faults.strikes(plan.MISTAKE_A_HOLDER_FOR_DEAD):
                self.journal.note("mistaken", output.name, now.attempt)
                self.store.mark_stopped(output, now.attempt, "taken for dead, by mistake")
                return None
            if is_local(path) and looked_at_s - began_s > self.ttl_s and heartbeat_of(path) == beat:
                remove_lock(path)  # as Marin would: the kernel's lock itself cannot be taken from who is only paused
                self.journal.note("lock removed", output.name, now.attempt)
                return None
        return None

    def make(self, claim: Claim) -> None:
        name = claim.output.name
        if not self.deaf:
            claim.lease.observe(StopsItself(journal=self.journal, claim=claim))
        try:
            with writing_as(claim.writer, None if self.deaf else claim.lease.check):
                self.write_parts(claim)
            self.journal.note("computed", name, claim.attempt)
            self.store.publish(claim, {"name": name, "inputs": {}}, {"fence": claim.attempt})
            self.journal.note("completed", name, claim.attempt)
        except LeaseLostError as lost:
            self.journal.note("rejected", name, claim.attempt, by_fence="may not publish" in str(lost))
            claim.lease.release()
        except LateWriteError as late:
            self.journal.note("late write found", name, claim.attempt)
            self.fail(claim, str(late))
        except (OSError, ValueError) as error:
            self.journal.note("failed", name, claim.attempt, error=f"{type(error).__name__}: {error}")
            self.fail(claim, str(error))

    def write_parts(self, claim: Claim) -> None:
        kind = plan.kind_of(claim.output.name)
        for part in plan.part_names():
            time.sleep(self.chance.uniform(0, 0.03))
            if self.faults.strikes(plan.PAUSE_BEFORE_WRITING):
                self.faults.pause("before writing")
            place = join(claim.path, part)
            if not (kind.resumes and exists(place)):
                write_bytes(place, plan.part_bytes(claim.output.name, part, claim.attempt), replace=not kind.creates)

    def fail(self, claim: Claim, error: str) -> None:
        try:
            self.store.fail(claim, {"name": claim.output.name}, error, "")
        except (LeaseLostError, OSError, ValueError) as second:
            self.journal.note("failure not recorded", claim.output.name, claim.attempt, error=str(second))


@dataclass(frozen=True, kw_only=True)
class StopsItself:
    """Ends this process when its lease is lost, as a watchdog does."""

    journal: Journal
    claim: Claim

    def renewed(self, deadline_s: float) -> None:
        return

    def released(self) -> None:
        return

    def lost(self, reason: str) -> None:
        self.journal.note("stopped itself", self.claim.output.name, self.claim.attempt, reason=reason)
        os.kill(os.getpid(), signal.SIGKILL)


def heartbeat_of(path: str) -> int:
    """When a lock on a disk was last renewed."""
    try:
        return os.stat(join(path, lease.NAME)).st_mtime_ns if is_local(path) else 0
    except FileNotFoundError:
        return 0


def remove_lock(path: str) -> None:
    try:
        os.unlink(join(path, lease.NAME))
    except FileNotFoundError:
        return
