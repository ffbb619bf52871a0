"""`.marin/jobs/<n>.json`: the note of the Ray job that runs attempt n at an output, written before it is submitted.

A submitter creates the note first. So of two concurrent runs one creates it, and both wait for one job; and if the
first run dies, a later run finds its job by the note beside the output. The job's process reads its task from the note
and adds its outcome to it.

Three facts are added after creation: a request to stop, the outcome, and an end without an outcome. Each is written
once; the first writer wins.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_resources.host.process import process_is_gone, this_process, user_name
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.output.attempts import has_mark, latest_attempt
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

FOLDER = ".marin/jobs"
FORMAT_VERSION = 2
"""1 had no batch job."""


class JobNoteError(ControlFileError):
    """A note that cannot be used: one sentence with its path."""


log = logging.getLogger(__name__)

SUBMITTER = {"host": Required(str), "pid": Required(int), "process": Required(str), "user": str, "run_id": str}
SHAPE = {
    "attempt": Required(int),
    **dict.fromkeys(("submission_id", "dashboard", "session", "submitted_at"), Required(str)),
    "task": Required(dict),
    "code": Required(dict),
    "by": Required(SUBMITTER),
    "owner": Required(SUBMITTER),
    "stop": {"by": Required(str), "reason": Required(str)},
    "outcome": {"end": Required(str), "error": str, "traceback": str, "holder": dict},
    "ended": str,
    "carrier": {"job": Required(str), "mailbox": Required(str)},
}
FORMAT = VersionedJson(
    kind="job note",
    newest=FORMAT_VERSION,
    error=JobNoteError,
    shape=SHAPE,
    if_newer="Update this checkout, or the image of the cluster.",
)


@dataclass(frozen=True, kw_only=True)
class Submitter:
    """A process that submits jobs and waits for them."""

    host: str
    pid: int
    process: str
    """As `process.this_process` returns it."""
    user: str | None
    run_id: str | None

    @staticmethod
    def here(run_id: str | None) -> Submitter:
        """This process, in the Dagster run of this id."""
        return Submitter(
            host=os.uname().nodename, pid=os.getpid(), process=this_process(), user=user_name(), run_id=run_id
        )

    def is_gone(self) -> bool:
        """Whether its process has ended. False for a process of another machine, which cannot be observed."""
        return process_is_gone(self.process)


@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """A job that runs the steps of many notes."""

    job: str
    """Id of the job on its cluster."""
    task_queue: str
    """The folder of messages to it."""

    def to_dict(self) -> dict[str, str]:
        """The fields as JSON, by the names that notes have always had."""
        return {"job": self.job, "mailbox": self.task_queue}


@dataclass(frozen=True, kw_only=True)
class JobNote:
    attempt: int
    submission_id: str
    """The job's id on its cluster; the id of the step in its batch job, if it has one."""
    dashboard: str
    """Address of the cluster."""
    session: str
    """Id of the cluster's head; a restarted head at the same address has another."""
    task: Task
    code: Mapping[str, Any]
    """The code that the job runs: how it is delivered, and its source."""
    submitted_at: str
    """ISO 8601, UTC."""
    by: Submitter
    """The submitter that created the note."""
    owner: Submitter
    """The submitter that stops the job if no run waits for it."""
    stop: Mapping[str, Any] | None = None
    """{"by", "reason", "at"}: a request to stop the job."""
    outcome: Outcome | None = None
    """The worker's outcome."""
    ended: str | None = None
    """Reason for the end of the job, if it reported no outcome."""
    batch_job: BatchJob | None = None
    """The job that runs the step with others; None if the step is a job of its own."""
    generation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        names = {field.name for field in dataclasses.fields(self)} - {"generation", "batch_job"}
        fields = {name: getattr(self, name) for name in names}
        submitters = {"by": vars(self.by), "owner": vars(self.owner)}
        outcome = self.outcome.to_dict() if self.outcome else None
        return {
            "format_version": FORMAT_VERSION,
            **fields,
            **submitters,
            "task": self.task.to_dict(),
            "outcome": outcome,
            "carrier": self.batch_job.to_dict() if self.batch_job else None,
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any], generation: str) -> JobNote:
        """Raises ValueError, KeyError or TypeError for a mapping that is not a note."""
        arguments = {name: value for name, value in fields.items() if name not in ("format_version", "carrier")}
        submitters = {"by": Submitter(**fields["by"]), "owner": Submitter(**fields["owner"])}
        outcome = Outcome.from_dict(fields["outcome"]) if fields.get("outcome") else None
        carrier = fields.get("carrier")
        batch_job = BatchJob(job=carrier["job"], task_queue=carrier["mailbox"]) if carrier else None
        parsed = {"task": Task.from_dict(fields["task"]), "outcome": outcome, "batch_job": batch_job}
        return JobNote(**{**arguments, **submitters, **parsed, "generation": generation})

    @property
    def job(self) -> str:
        """The id of the cluster's job that runs the step: its own, or its batch job's."""
        return self.batch_job.job if self.batch_job else self.submission_id

    @property
    def open(self) -> bool:
        """Whether the job may still begin, or is at work."""
        return self.stop is None and not self.closed

    @property
    def closed(self) -> bool:
        """Whether the end of the job is recorded."""
        return self.outcome is not None or self.ended is not None


def note_path(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.json")


def read_note(path: str) -> JobNote | None:
    """The note, or None if it does not exist. Raises ControlFileError if it cannot be read, and UnavailableError."""
    snapshot = control.read(path)
    return None if snapshot is None else _parse(path, snapshot)


def is_closed(path: str) -> bool:
    """Whether the end of the job is recorded, or its note is gone. Raises as `read_note` does."""
    note = read_note(path)
    return note is None or note.closed


def create_note(output_path: str, note: JobNote) -> JobNote:
    """Create the note of an attempt. Return `note`, or the note that another submitter has created first."""
    path = note_path(output_path, note.attempt)
    try:
        generation = control.write(path, _to_bytes(note), expected=None)
    except ConflictError:
        return _require(path)
    return dataclasses.replace(note, generation=generation)


def first_free_attempt(output_path: str) -> int:
    """The number of the next attempt: above the latest attempt, and above those whose jobs have not begun."""
    newest = newest_note_above_fence(output_path)
    return newest.attempt + 1 if newest else latest_attempt(output_path) + 1


def newest_note_above_fence(output_path: str) -> JobNote | None:
    """The note of the latest job that has not claimed the output. Numbers have no gaps, so no listing is needed."""
    attempt, newest = latest_attempt(output_path) + 1, None
    while (note := read_note(note_path(output_path, attempt))) is not None:
        attempt, newest = attempt + 1, note
    return newest


def was_lost_before(note: JobNote) -> bool:
    """Whether the attempt before it that began was lost, on the same cluster and with the same resources.

    So this cluster has had what the step requests, and it was taken away. Raises UnavailableError.
    """
    path = note.task.path
    for attempt in range(note.attempt - 1, 0, -1):
        try:
            earlier = read_note(note_path(path, attempt))
        except ControlFileError as error:
            log.warning("whether attempt %d was lost is not known: %s", attempt, error)
            return False
        if earlier is None or earlier.dashboard != note.dashboard or earlier.task.resources != note.task.resources:
            return False
        if has_mark(path, attempt):
            return earlier.stop is None and (earlier.outcome is None or earlier.outcome.end is End.LOST)
    return False


def add_outcome(path: str, outcome: Outcome) -> JobNote:
    """Add the outcome, from the job's own process; return the resulting note. Raises JobNoteError if it is gone."""
    return _change(path, lambda note: None if note.outcome else dataclasses.replace(note, outcome=outcome))


def add_stop(path: str, by: str, reason: str) -> JobNote:
    """Request the job to stop. A job that has not begun will not begin."""
    stop = {"by": by, "reason": reason, "at": datetime.now(UTC).isoformat()}
    return _change(path, lambda note: None if note.stop else dataclasses.replace(note, stop=stop))


def add_ended(path: str, why: str) -> JobNote:
    """Record that the job has ended without an outcome. Its attempt number is used up."""
    return _change(path, lambda note: None if note.ended else dataclasses.replace(note, ended=why))


def take_over(path: str, owner: Submitter) -> JobNote:
    """Make `owner` the submitter that stops the job if no run waits for it."""
    return _change(path, lambda note: None if note.owner == owner else dataclasses.replace(note, owner=owner))


def _change(path: str, change: Callable[[JobNote], JobNote | None]) -> JobNote:
    """Compare and swap until it succeeds. A change to None leaves the note unchanged."""
    while True:
        note = _require(path)
        changed = change(note)
        if changed is None:
            return note
        try:
            generation = control.write(path, _to_bytes(changed), expected=note.generation)
        except ConflictError:
            continue
        return dataclasses.replace(changed, generation=generation)


def _require(path: str) -> JobNote:
    note = read_note(path)
    if note is None:
        raise JobNoteError(f"The job note {path!r} does not exist any more. Run again; complete outputs are reused.")
    return note


def _to_bytes(note: JobNote) -> bytes:
    return json.dumps(note.to_dict(), indent=1).encode()


def _parse(path: str, snapshot: control.Snapshot) -> JobNote:
    fields = FORMAT.parse(snapshot.data, path)
    try:
        return JobNote.from_dict(fields, snapshot.generation)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FORMAT.invalid(path, error) from error
