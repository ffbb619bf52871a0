"""What came of a job: its worker's own word in the note, and else what Ray and whoever stopped it say of it."""

from __future__ import annotations

from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobStatus
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.job_notes import JobNote
from marin_resources.wire.outcome import End, Outcome

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


def outcome_of(note: JobNote, info: JobInfo, output_path: str) -> Outcome:
    """The outcome of a job that has ended. Looks beside the output, if the note does not tell."""
    if note.outcome is not None:
        return note.outcome
    if note.stop is not None:
        return stopped_outcome(note)
    if info.status is JobStatus.STOPPED:
        return Outcome(end=End.FAILED, error=f"its job {info.submission_id} was stopped, by Ray's own means")
    if info.status is JobStatus.SUCCEEDED:
        return Outcome(end=End.LOST, error=f"its job {info.submission_id} ended without a word")
    if info.error_type in NEVER_BEGAN:
        first, rest = _message(info)
        return Outcome(end=End.FAILED, error=f"its job {info.submission_id} did not begin: {first}", traceback=rest)
    if info.exit_code is None:
        return Outcome(end=End.LOST, error=f"its job {info.submission_id} was lost: {_message(info)[0]}")
    signal = -info.exit_code if info.exit_code < 0 else info.exit_code - SHELL_SIGNAL
    if signal > 0:
        return Outcome(end=End.LOST, error=f"the process of its job {info.submission_id} was killed by signal {signal}")
    return recorded_failure(output_path, note.attempt) or _ended_with_a_code(note, info, output_path)


def stopped_outcome(note: JobNote) -> Outcome:
    """A run that was ended took its job with it, and others go on; what a person stopped stays so."""
    assert note.stop is not None
    by, reason = note.stop["by"], note.stop["reason"]
    end = End.LOST if by.startswith(RUN_WORD) else End.FAILED
    return Outcome(end=end, error=f"its job {note.submission_id} was stopped by {by}: {reason}")


def _ended_with_a_code(note: JobNote, info: JobInfo, output_path: str) -> Outcome:
    """A worker that took the attempt and was gone crashed, and may be luckier; one that never did will not be."""
    told = f"its job {info.submission_id} ended with code {info.exit_code}"
    if latest_attempt(output_path) >= note.attempt:
        return Outcome(end=End.LOST, error=f"{told}, and without a word")
    return Outcome(end=End.FAILED, error=f"{told} before the step", traceback=_message(info)[1])


def _message(info: JobInfo) -> tuple[str, str]:
    """Ray's first line, and the rest: the end of the job's log, if it had begun."""
    first, _, rest = info.message.strip().partition("\n")
    return first, rest
