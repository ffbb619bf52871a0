"""Submit the jobs of a backup again, to the next head of their cluster.

A step gets a new attempt, unless it is complete, was stopped, or has one already: a run that waits for it submits it
again by itself, and of the two one creates the note. The attempt before is recorded as stopped, so that the next one
need not wait until its lease is stale. A command gets its own id again. So all of this may be repeated.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.code.kept import read_kept
from marin_resources.ray_tpu.cluster.code.python import python_for
from marin_resources.ray_tpu.cluster.errors import ApiError, JobExistsError
from marin_resources.ray_tpu.cluster.handle import submission_id
from marin_resources.ray_tpu.cluster.restart.backup import Backup, Command
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.submission import submit_note
from marin_resources.ray_tpu.environment.extras import MissingRequirementError
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.attempts import has_begun
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.notes.job_notes import JobNote, Submitter
from marin_resources.storage.output.store import Store
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ControlFileError

RESTARTED = "its cluster was restarted"


class Fate(enum.StrEnum):
    """The outcome for a job of the backup."""

    SUBMITTED = "submitted again"
    NEEDLESS = "not needed"
    LOST = "not submitted again"


@dataclass(frozen=True, kw_only=True)
class Restored:
    """One job of the backup."""

    job: str
    """The id of the job now, or before if it has none."""
    fate: Fate
    why: str = ""

    def describe(self) -> str:
        return f"{self.fate}: {self.job}{f' ({self.why})' if self.why else ''}"


class SameHeadError(MarinError):
    """The head of the backup still answers: one sentence."""


async def submit_again(
    backup: Backup, api: JobsApi, settings: ClusterSettings, retry: RetryWhileUnreachable, prefix: str
) -> list[Restored]:
    """Submit all jobs of the backup again; return what became of each. `prefix`: where packages are kept.

    Raises SameHeadError.
    """
    session = (await retry.call(api.version)).session
    if session == backup.session:
        raise SameHeadError(
            f"The head at {settings.address} is the one whose jobs were backed up, so they are there still. Restart it "
            "first."
        )
    again = _Again(api=api, settings=settings, retry=retry, prefix=prefix, session=session)
    steps = [await again.step(path) for path in backup.steps]
    return [*steps, *[await again.command(command) for command in backup.commands]]


@dataclass(frozen=True, kw_only=True)
class _Again:
    api: JobsApi
    settings: ClusterSettings
    retry: RetryWhileUnreachable
    prefix: str
    session: str

    async def step(self, path: str) -> Restored:
        """Submit a step again. One that cannot be read or shipped does not keep the others from it."""
        try:
            note = await asyncio.to_thread(job_notes.read_note, path)
            if note is None:
                return Restored(job=path, fate=Fate.NEEDLESS, why="its output was removed")
            return await self._step(note, path)
        except (ControlFileError, UnavailableError, MissingRequirementError) as error:
            return Restored(job=path, fate=Fate.LOST, why=str(error))

    async def command(self, command: Command) -> Restored:
        if (why := await self._ship(command.package, self.prefix)) is not None:
            return Restored(job=command.id, fate=Fate.LOST, why=why)
        request = lambda: self.api.submit(  # noqa: E731
            submission_id=command.id,
            entrypoint=command.entrypoint,
            runtime_env=command.runtime_env,
            metadata=command.metadata,
            num_cpus=command.cpus,
            memory_bytes=command.memory_bytes,
        )
        try:
            await self.retry.call(request)
        except JobExistsError:
            return Restored(job=command.id, fate=Fate.NEEDLESS, why="the cluster has it")
        except ApiError as error:
            return Restored(job=command.id, fate=Fate.LOST, why=str(error))
        return Restored(job=command.id, fate=Fate.SUBMITTED)

    async def _step(self, note: JobNote, path: str) -> Restored:
        task = note.task
        store = Store(task.prefix)
        observed = (await asyncio.to_thread(store.look, [task.output]))[task.output]
        if observed.done:
            return Restored(job=note.submission_id, fate=Fate.NEEDLESS, why="its output is complete")
        if note.stop is not None:
            return Restored(job=note.submission_id, fate=Fate.NEEDLESS, why="it was stopped before")
        if note.closed and note.ended != RESTARTED:
            return Restored(job=note.submission_id, fate=Fate.NEEDLESS, why="its end is recorded")
        newer = await asyncio.to_thread(job_notes.read_note, job_notes.note_path(task.path, note.attempt + 1))
        if newer is not None and newer.open and newer.by.run_id is None and newer.session == self.session:
            return await self._post(newer)  # of a restart, which may have died in between
        if newer is not None or await asyncio.to_thread(has_begun, task.path, note.attempt + 1):
            return Restored(job=note.submission_id, fate=Fate.NEEDLESS, why="a later attempt has been submitted")
        if (why := await self._ship(note.code.get("package"), task.prefix)) is not None:
            return Restored(job=note.submission_id, fate=Fate.LOST, why=why)
        self._python_of(note)  # before anything is written
        await asyncio.to_thread(store.mark_stopped, task.output, note.attempt, RESTARTED)
        await asyncio.to_thread(job_notes.add_ended, path, RESTARTED)
        return await self._submit(note)

    async def _submit(self, before: JobNote) -> Restored:
        at, attempt = datetime.now(UTC).isoformat(), before.attempt + 1
        task = dataclasses.replace(before.task, attempt=attempt, stale_lease=None, submitted_at=at)
        new = JobNote(
            attempt=attempt,
            submission_id=submission_id(task),
            dashboard=self.settings.address,
            session=self.session,
            task=task,
            code=before.code,
            submitted_at=at,
            by=Submitter.here(None),
            owner=before.owner,
        )
        note = await asyncio.to_thread(job_notes.create_note, task.path, new)
        if note.submitted_at != at or note.by != new.by:
            return Restored(job=note.submission_id, fate=Fate.NEEDLESS, why="its run has submitted it")
        return await self._post(note)

    async def _post(self, note: JobNote) -> Restored:
        """Submit the job of a note, which the cluster may have already."""
        path = job_notes.note_path(note.task.path, note.attempt)
        refusal = await submit_note(
            note, path, self._python_of(note), api=self.api, settings=self.settings, retry=self.retry
        )
        if refusal is not None:
            return Restored(job=note.submission_id, fate=Fate.LOST, why=refusal.error)
        return Restored(job=note.submission_id, fate=Fate.SUBMITTED)

    def _python_of(self, note: JobNote) -> str:
        """The Python of the nodes that has what the step requires. Raises MissingRequirementError."""
        return python_for(f"Step {note.task.output.label!r}", note.task.extras, self.settings)

    async def _ship(self, uri: str | None, prefix: str) -> str | None:
        """Upload a package that the new head lacks; return why that cannot be."""
        if uri is None or await self.retry.call(lambda: self.api.has_package(uri)):
            return None
        data = await asyncio.to_thread(read_kept, prefix, uri)
        if data is None:
            return f"its code {uri} is neither on the cluster nor kept below {prefix!r}"
        await self.retry.call(lambda: self.api.upload_package(uri, data))
        return None
