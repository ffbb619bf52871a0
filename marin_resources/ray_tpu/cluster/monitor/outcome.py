"""The outcome of a job that has ended: the worker's own report in the note, else the end by Ray and the note."""

from __future__ import annotations

import logging
import signal

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.settings import CodeMode
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.attempts import has_begun
from marin_resources.storage.output.notes.job_notes import JobNote
from marin_resources.storage.output.notes.progress import read_progress
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.outcome import End, Outcome

STOPPED_BY_RUN = "Dagster run "
"""Prefix of `stop["by"]` in a note if a terminated run stopped the job. Any other value names a person."""
START_FAILURES = frozenset(
    {
        "RUNTIME_ENV_SETUP_FAILURE",
        "JOB_SUPERVISOR_ACTOR_START_FAILURE",
        "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
        "JOB_ENTRYPOINT_COMMAND_START_ERROR",
    }
)
"""Ray's error types of a job that did not start. A retry would fail in the same way."""
QUEUED_TOO_LONG = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
"""Ray's error type of a job that waited for its node longer than the head's RAY_JOB_START_TIMEOUT_SECONDS (900 s)."""
NO_CODE = "No module named 'marin_resources"
"""Python's error for a job whose shipped package was removed from its node: Ray unpacks it again for the next job."""
SHELL_SIGNAL_OFFSET = 128
"""A shell reports a command killed by a signal as 128 + the signal's number, Python as the negative number."""
CRASHES = {
    int(number): number.name
    for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP)
}
"""The signals by which a process dies of its own fault. Exit code 1 is Python's for all that is uncaught, such as a
store that does not answer."""

log = logging.getLogger(__name__)


def outcome_of(note: JobNote, info: JobInfo, output_path: str) -> Outcome:
    """Return the outcome of an ended job. Reads the attempt beside the output if the note has no outcome."""
    if note.outcome is not None:
        return note.outcome
    if note.stop is not None:
        return stopped_outcome(note)
    job = f"its cluster job {info.submission_id}"
    if info.status is JobStatus.STOPPED:
        return Outcome(end=End.FAILED, error=f"{job} was stopped through Ray, not by a Marin command")
    if info.status is JobStatus.SUCCEEDED and note.ended is not None:
        return Outcome(end=End.NOT_BEGUN, error=f"{job} began too late and did nothing: {note.ended}")
    if info.status is JobStatus.SUCCEEDED:
        return Outcome(end=End.LOST, error=f"{job} ended without reporting an outcome")
    if info.error_type == QUEUED_TOO_LONG:
        return Outcome(end=End.NOT_BEGUN, error=f"{job} has waited for its node as long as Ray lets a job wait")
    if info.error_type in START_FAILURES:
        first, rest = _split_message(info)
        return Outcome(end=End.FAILED, error=f"{job} did not begin: {first}", traceback=rest)
    if info.exit_code is None:
        return Outcome(end=End.LOST, error=f"{job} was lost: {_split_message(info)[0]}")
    number = -info.exit_code if info.exit_code < 0 else info.exit_code - SHELL_SIGNAL_OFFSET
    if number > 0:
        crash = ""
        if number in CRASHES and has_begun(output_path, note.attempt):
            crash = _crash(f"signal {number} ({CRASHES[number]})", output_path, note.attempt)
        return Outcome(end=End.LOST, error=f"the process of {job} was killed by signal {number}", crash=crash)
    return recorded_failure(output_path, note.attempt) or _outcome_of_exit_code(note, info, output_path)


def stopped_outcome(note: JobNote) -> Outcome:
    """LOST if a terminated run stopped the job, so that other runs retry; FAILED if a person did."""
    assert note.stop is not None
    by, reason = note.stop["by"], note.stop["reason"]
    end = End.LOST if by.startswith(STOPPED_BY_RUN) else End.FAILED
    return Outcome(end=end, error=f"its cluster job {note.submission_id} was stopped by {by}: {reason}")


def _outcome_of_exit_code(note: JobNote, info: JobInfo, output_path: str) -> Outcome:
    """LOST if the worker began the attempt, so it is retried; FAILED if it never did, as it would fail again."""
    sentence = f"its cluster job {info.submission_id} ended with code {info.exit_code}"
    if has_begun(output_path, note.attempt):
        crash = _crash(f"exit code {info.exit_code}", output_path, note.attempt) if info.exit_code != 1 else ""
        return Outcome(end=End.LOST, error=f"{sentence} without reporting an outcome", crash=crash)
    if note.code["mode"] == CodeMode.SHIP and NO_CODE in info.message:
        return Outcome(end=End.LOST, error=f"{sentence} before the step, as its code is gone from its node")
    return Outcome(end=End.FAILED, error=f"{sentence} before the step", traceback=_split_message(info)[1])


def _crash(how: str, output_path: str, attempt: int) -> str:
    """The crash of the job's process: how it died, and the last step that was noted for its attempt."""
    try:
        pace = read_progress(output_path, attempt)
    except (ControlFileError, UnavailableError) as error:
        log.warning("a crash in attempt %d has no known step: %s", attempt, error)
        return ""
    return f"its process died by {how}" + ("" if pace is None else f", after step {pace.step} or a few more")


def _split_message(info: JobInfo) -> tuple[str, str]:
    """Ray's first line, and the rest: the end of the job's log, if it had begun."""
    first, _, rest = info.message.strip().partition("\n")
    return first, rest
