"""The steps that carriers have taken and not ended, for people: each carrier keeps a list of them in its mailbox."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.handle import metadata_of
from marin_resources.storage.control import control
from marin_resources.storage.output.attempts import has_begun
from marin_resources.storage.output.job_notes import JobNote, read_note
from marin_resources.storage.paths import join
from marin_resources.versioned_json import ControlFileError, Required, VersionedJson

NAME = "steps.json"
CARRIER = "marin/carrier"
"""Metadata of a carrier's job: the path of its mailbox."""
FORMAT_VERSION = 1
FORMAT = VersionedJson(
    kind="list of steps", newest=FORMAT_VERSION, error=ControlFileError, shape={"notes": Required([str])}
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CarriedStep:
    """A step that a carrier has taken."""

    note: JobNote
    note_path: str
    status: JobStatus
    """PENDING until its worker has claimed the output."""

    def as_job(self) -> JobInfo:
        """The step in the form of a job."""
        note = self.note
        return JobInfo(
            submission_id=note.submission_id,
            status=self.status,
            message=f"It is a step of the job {note.job!r}.",
            error_type=None,
            exit_code=None,
            submitted_at_s=datetime.fromisoformat(note.submitted_at).timestamp(),
            ended_at_s=None,
            metadata=metadata_of(note.task, note),
            entrypoint=note.task.fn,
            node_id=None,
        )


def write_steps(mailbox: str, note_paths: Iterable[str]) -> None:
    """Replace the list of a carrier. Raises UnavailableError."""
    fields = {"format_version": FORMAT_VERSION, "notes": sorted(note_paths)}
    control.put(join(mailbox, NAME), json.dumps(fields).encode())


async def steps_of(jobs: Sequence[JobInfo]) -> list[CarriedStep]:
    """The unfinished steps of the carriers among these jobs, by the time of their submission.

    A carrier whose mailbox cannot be read from here has none.
    """
    mailboxes = [job.metadata[CARRIER] for job in jobs if CARRIER in job.metadata and not job.status.is_terminal]
    listed = await asyncio.gather(*(asyncio.to_thread(_read_steps, mailbox) for mailbox in mailboxes))
    return sorted((step for steps in listed for step in steps), key=lambda step: step.note.submitted_at)


async def find_step(jobs: Sequence[JobInfo], step_id: str) -> CarriedStep | None:
    """The unfinished step of this id."""
    found = [step for step in await steps_of(jobs) if step.note.submission_id == step_id]
    return found[0] if found else None


def _read_steps(mailbox: str) -> list[CarriedStep]:
    path = join(mailbox, NAME)
    try:
        found = control.read(path)
        listed = [] if found is None else FORMAT.parse(found.data, path)["notes"]
        notes = [(path, note) for path in listed if (note := read_note(path)) is not None]
        return [_step(path, note) for path, note in notes if not note.closed]
    except (OSError, ControlFileError) as error:  # another user's bucket, or a damaged file: of this carrier alone
        log.warning("the steps of the carrier at %s cannot be listed: %s", mailbox, error)
        return []


def _step(path: str, note: JobNote) -> CarriedStep:
    begun = has_begun(note.task.path, note.attempt)
    return CarriedStep(note=note, note_path=path, status=JobStatus.RUNNING if begun else JobStatus.PENDING)
