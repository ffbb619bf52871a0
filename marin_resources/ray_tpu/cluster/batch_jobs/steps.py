"""The unfinished steps of batch jobs, for people: each batch job keeps a list of them in its task queue."""

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
BATCH_JOB = "marin/carrier"
"""Metadata of a batch job's job: the path of its task queue."""
FORMAT_VERSION = 1
FORMAT = VersionedJson(
    kind="list of steps", newest=FORMAT_VERSION, error=ControlFileError, shape={"notes": Required([str])}
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BatchStep:
    """A step that a batch job has taken."""

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


def write_steps(task_queue: str, note_paths: Iterable[str]) -> None:
    """Replace the list of a batch job. Raises UnavailableError."""
    fields = {"format_version": FORMAT_VERSION, "notes": sorted(note_paths)}
    control.put(join(task_queue, NAME), json.dumps(fields).encode())


async def steps_of(jobs: Sequence[JobInfo]) -> list[BatchStep]:
    """The unfinished steps of the batch jobs among these jobs, by the time of their submission.

    A batch job whose task queue cannot be read from here has none.
    """
    return [step for load in await loads_of(jobs) for step in load.steps]


@dataclass(frozen=True, kw_only=True)
class Load:
    """The unfinished steps of a batch job."""

    batch_job: JobInfo
    steps: tuple[BatchStep, ...]
    """Steps that have not ended, by the time of their submission."""
    at_work: bool
    """Whether it had steps when it last wrote its list, or that is unknown here."""


async def loads_of(jobs: Sequence[JobInfo]) -> list[Load]:
    """The loads of the batch jobs among these jobs that have not ended."""
    batch_jobs = [job for job in jobs if BATCH_JOB in job.metadata and not job.status.is_terminal]
    return list(await asyncio.gather(*(asyncio.to_thread(_read_load, batch_job) for batch_job in batch_jobs)))


async def find_step(jobs: Sequence[JobInfo], step_id: str) -> BatchStep | None:
    """The unfinished step of this id."""
    matching = [step for step in await steps_of(jobs) if step.note.submission_id == step_id]
    return matching[0] if matching else None


def _read_load(batch_job: JobInfo) -> Load:
    task_queue = batch_job.metadata[BATCH_JOB]
    path = join(task_queue, NAME)
    try:
        file = control.read(path)
        listed = [] if file is None else FORMAT.parse(file.data, path)["notes"]
    except (OSError, ControlFileError) as error:  # another user's bucket, or a damaged file: of this batch job alone
        log.warning("the steps of the batch job at %s cannot be listed: %s", task_queue, error)
        return Load(batch_job=batch_job, steps=(), at_work=True)
    steps = [step for note_path in listed if (step := _read_step(note_path)) is not None]
    steps.sort(key=lambda step: step.note.submitted_at)
    return Load(batch_job=batch_job, steps=tuple(steps), at_work=bool(listed))


def _read_step(path: str) -> BatchStep | None:
    """The step of a note, unless it has ended, or cannot be read."""
    try:
        note = read_note(path)
        return None if note is None or note.closed else _step(path, note)
    except (OSError, ControlFileError) as error:  # of this step alone
        log.warning("the step of the note %s cannot be listed: %s", path, error)
        return None


def _step(path: str, note: JobNote) -> BatchStep:
    begun = has_begun(note.task.path, note.attempt)
    return BatchStep(note=note, note_path=path, status=JobStatus.RUNNING if begun else JobStatus.PENDING)
