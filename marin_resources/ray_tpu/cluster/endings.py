"""What came of a job: its worker's own word in the note, and else what Ray and whoever stopped it say of it."""

from __future__ import annotations

import json

from marin_resources.ray_tpu.backend import End, Outcome
from marin_resources.ray_tpu.cluster.jobs_api import JobInfo, JobStatus
from marin_resources.ray_tpu.worker import outcome_from_json
from marin_resources.storage.job_notes import JobNote

RUN_WORD = "Dagster run "
"""Whoever stopped a job is called so, if it was a run that was ended; else it was a person."""
NEVER_BEGAN = frozenset(
    {
        "RUNTIME_ENV_SETUP_FAILURE",
        "JOB_SUPERVISOR_ACTOR_START_TIMEOUT",
        "JOB_SUPERVISOR_ACTOR_START_FAILURE",
        "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
        "JOB_ENTRYPOINT_COMMAND_START_ERROR",
    }
)
"""Ray's kinds of error that would come again."""
SHELL_SIGNAL = 128
"""A shell tells the signal that ended its command as 128 + its number, Python as its negative."""


def outcome_of(note: JobNote, info: JobInfo) -> Outcome:
    """The outcome of a job that has ended."""
    if note.outcome is not None:
        return outcome_from_json(json.dumps(dict(note.outcome)))
    if note.stop is not None:
        return stopped_outcome(note)
    if info.status is JobStatus.STOPPED:
        return Outcome(end=End.FAILED, error=f"its job {info.submission_id} was stopped, by Ray's own means")
    if info.status is JobStatus.SUCCEEDED:
        return Outcome(end=End.LOST, error=f"its job {info.submission_id} ended without a word")
    return _failed(info)


def stopped_outcome(note: JobNote) -> Outcome:
    """A run that was ended took its job with it, and others go on; what a person stopped stays so."""
    assert note.stop is not None
    by, reason = note.stop["by"], note.stop["reason"]
    end = End.LOST if by.startswith(RUN_WORD) else End.FAILED
    return Outcome(end=end, error=f"its job {note.submission_id} was stopped by {by}: {reason}")


def _failed(info: JobInfo) -> Outcome:
    first, _, rest = info.message.strip().partition("\n")
    if info.error_type in NEVER_BEGAN:
        return Outcome(end=End.FAILED, error=f"its job {info.submission_id} did not begin: {first}", traceback=rest)
    code = info.exit_code
    if code is None:
        return Outcome(end=End.LOST, error=f"its job {info.submission_id} was lost: {first}")
    signal = -code if code < 0 else code - SHELL_SIGNAL
    if signal > 0:
        return Outcome(end=End.LOST, error=f"the process of its job {info.submission_id} was killed by signal {signal}")
    return Outcome(
        end=End.FAILED, error=f"its job {info.submission_id} ended with code {code} before the step", traceback=rest
    )
