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
from marin_resources.storage.output.notes.job_notes import JobNote, read_note
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

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
    return [step for load in await loads_of(jobs) for step in load.steps]


@dataclass(frozen=True, kw_only=True)
class Load:
    """The unfinished steps of a carrier."""

    carrier: JobInfo
    steps: tuple[CarriedStep, ...]
    """Steps that have not ended, by the time of their submission."""
    at_work: bool
    """Whether it had steps when it last wrote its list, or that is unknown here."""


async def loads_of(jobs: Sequence[JobInfo]) -> list[Load]:
    """The loads of the carriers among these jobs that have not ended."""
    carriers = [job for job in jobs if CARRIER in job.metadata and not job.status.is_terminal]
    return list(await asyncio.gather(*(asyncio.to_thread(_read_load, carrier) for carrier in carriers)))


async def find_step(jobs: Sequence[JobInfo], step_id: str) -> CarriedStep | None:
    """The unfinished step of this id."""
    matching = [step for step in await steps_of(jobs) if step.note.submission_id == step_id]
    return matching[0] if matching else None


def _read_load(carrier: JobInfo) -> Load:
    mailbox = carrier.metadata[CARRIER]
    path = join(mailbox, NAME)
    try:
        file = control.read(path)
        listed = [] if file is None else FORMAT.parse(file.data, path)["notes"]
    except (OSError, ControlFileError) as error:  # another user's bucket, or a damaged file: of this carrier alone
        log.warning("the steps of the carrier at %s cannot be listed: %s", mailbox, error)
        return Load(carrier=carrier, steps=(), at_work=True)
    steps = [step for note_path in listed if (step := _read_step(note_path)) is not None]
    steps.sort(key=lambda step: step.note.submitted_at)
    return Load(carrier=carrier, steps=tuple(steps), at_work=bool(listed))


def _read_step(path: str) -> CarriedStep | None:
    """The step of a note, unless it has ended, or cannot be read."""
    try:
        note = read_note(path)
        return None if note is None or note.closed else _step(path, note)
    except (OSError, ControlFileError) as error:  # of this step alone
        log.warning("the step of the note %s cannot be listed: %s", path, error)
        return None


def _step(path: str, note: JobNote) -> CarriedStep:
    begun = has_begun(note.task.path, note.attempt)
    return CarriedStep(note=note, note_path=path, status=JobStatus.RUNNING if begun else JobStatus.PENDING)
