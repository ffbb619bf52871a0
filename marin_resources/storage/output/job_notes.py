"""`.marin/jobs/<n>.json`: the job on a cluster that makes attempt n at an output, from before it is submitted.

Whoever submits a job creates its note first. So of two runs that come at once one creates it, and both wait for one
job; and a run that comes when the first one has died finds the job by what lies beside the output. The job's own
process reads its task here, and adds its outcome here.

A note says three things beside what it was created with: that the job was told to stop, what its outcome was, that it
has ended without one. Of each the first word stands.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_resources.process import process_is_gone, this_process, user_name
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.paths import join
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task

FOLDER = ".marin/jobs"
FORMAT_VERSION = 1


class JobNoteError(ValueError):
    """A note that cannot be used: one sentence with its path."""


@dataclass(frozen=True, kw_only=True)
class Submitter:
    """A process that submits jobs and waits for them."""

    host: str
    pid: int
    process: str
    """As `this_process` tells it."""
    user: str | None
    run_id: str | None

    @staticmethod
    def here(run_id: str | None) -> Submitter:
        """This process, in the Dagster run of this id."""
        return Submitter(
            host=os.uname().nodename, pid=os.getpid(), process=this_process(), user=user_name(), run_id=run_id
        )

    def is_gone(self) -> bool:
        """Whether its process has ended. False for a process of another machine: that cannot be seen."""
        return process_is_gone(self.process)


@dataclass(frozen=True, kw_only=True)
class JobNote:
    attempt: int
    submission_id: str
    """The job's id on its cluster."""
    dashboard: str
    """Address of the cluster."""
    session: str
    """Of the cluster's head, which tells it from its successor at the same address."""
    task: Task
    code: Mapping[str, Any]
    """The code that the job runs: how it gets there, and from where."""
    submitted_at: str
    """ISO 8601, UTC."""
    by: Submitter
    """Who created the note."""
    owner: Submitter
    """Who is to stop the job if nobody waits for it any more."""
    stop: Mapping[str, Any] | None = None
    """{"by", "reason", "at"}: somebody wants the job to end."""
    outcome: Outcome | None = None
    """As the worker reports it."""
    ended: str | None = None
    """Why the job has ended, of one that told no outcome."""
    generation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "generation"}
        people = {"by": vars(self.by), "owner": vars(self.owner)}
        outcome = self.outcome.to_dict() if self.outcome else None
        return {"format_version": FORMAT_VERSION, **fields, **people, "task": self.task.to_dict(), "outcome": outcome}

    @staticmethod
    def from_dict(fields: Mapping[str, Any], generation: str) -> JobNote:
        """Raises ValueError, KeyError or TypeError for a mapping that is not a note."""
        known = {name: value for name, value in fields.items() if name != "format_version"}
        people = {"by": Submitter(**fields["by"]), "owner": Submitter(**fields["owner"])}
        outcome = Outcome.from_dict(fields["outcome"]) if fields.get("outcome") else None
        task = Task.from_dict(fields["task"])
        return JobNote(**{**known, **people, "task": task, "outcome": outcome, "generation": generation})

    @property
    def open(self) -> bool:
        """Whether the job may still begin, or be at work."""
        return self.stop is None and self.outcome is None and self.ended is None


def note_path(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.json")


def read_note(path: str) -> JobNote | None:
    """The note, or None if there is none. Raises JobNoteError for one of a newer format, and UnavailableError."""
    found = control.read(path)
    return None if found is None else _parse(path, found)


def create_note(output_path: str, note: JobNote) -> JobNote:
    """The note of this attempt that stands: `note`, or the one that somebody else has created before."""
    path = note_path(output_path, note.attempt)
    try:
        generation = control.write(path, _to_bytes(note), expected=None)
    except ConflictError:
        return _require(path)
    return dataclasses.replace(note, generation=generation)


def first_free_attempt(output_path: str) -> int:
    """The number of the next attempt: above the latest one, and above those whose jobs have yet to begin."""
    newest = newest_note_above_fence(output_path)
    return newest.attempt + 1 if newest else latest_attempt(output_path) + 1


def newest_note_above_fence(output_path: str) -> JobNote | None:
    """The latest job that has not claimed the output. Their numbers have no gaps, so nothing is listed."""
    attempt, newest = latest_attempt(output_path) + 1, None
    while (note := read_note(note_path(output_path, attempt))) is not None:
        attempt, newest = attempt + 1, note
    return newest


def add_outcome(path: str, outcome: Outcome) -> JobNote:
    """Say how the job ended, by its own process; returns the note that stands. Raises JobNoteError if it is gone."""
    return _change(path, lambda note: None if note.outcome else dataclasses.replace(note, outcome=outcome))


def add_stop(path: str, by: str, reason: str) -> JobNote:
    """Say that the job is to end: if it has not begun, it will not."""
    stop = {"by": by, "reason": reason, "at": datetime.now(UTC).isoformat()}
    return _change(path, lambda note: None if note.stop else dataclasses.replace(note, stop=stop))


def add_ended(path: str, why: str) -> JobNote:
    """Say that the job has ended and told no outcome: its number is used up."""
    return _change(path, lambda note: None if note.ended else dataclasses.replace(note, ended=why))


def take_over(path: str, owner: Submitter) -> JobNote:
    """Become the one who is to stop the job."""
    return _change(path, lambda note: None if note.owner == owner else dataclasses.replace(note, owner=owner))


def _change(path: str, change: Callable[[JobNote], JobNote | None]) -> JobNote:
    """Compare and swap until it goes through; a change that is None leaves the note as it is."""
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
        raise JobNoteError(f"The note of a job {path!r} is not there any more. Run again; what is complete is reused.")
    return note


def _to_bytes(note: JobNote) -> bytes:
    return json.dumps(note.to_dict(), indent=1).encode()


def _parse(path: str, found: control.Snapshot) -> JobNote:
    try:
        fields = json.loads(found.data)
        version = fields["format_version"]
        if version > FORMAT_VERSION:
            raise JobNoteError(
                f"The note of a job {path!r} has format version {version!r} and this software knows up to "
                f"{FORMAT_VERSION}. Update this checkout, or the image of the cluster."
            )
        return JobNote.from_dict(fields, found.generation)
    except JobNoteError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise JobNoteError(
            f"{path!r} is no note of a job ({error}). Look at it; move it aside if it is damaged."
        ) from error
