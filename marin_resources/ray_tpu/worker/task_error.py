"""The outcome of a Ray task whose worker reported none: it raised, ran out of memory, or is gone."""

from __future__ import annotations

import logging
import os

from marin_resources.ray_tpu.crash_note import Crash, crash_name, take_crash
from marin_resources.ray_tpu.log.attempt_log import local_log
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.storage.output.attempts import log_path
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

log = logging.getLogger(__name__)


def outcome_of_error(task: Task, error: BaseException) -> Outcome:
    """Return the outcome of a task for this error of Ray. A worker that killed its own process recorded its failure.

    A crash that the worker noted on this machine is in the outcome, and is appended to the log of the attempt.
    """
    from ray.exceptions import OutOfMemoryError, RayTaskError, WorkerCrashedError  # late, for its weight

    if isinstance(error, OutOfMemoryError):
        return Outcome(end=End.FAILED, error=f"the machine ran out of memory: {_first_line(error)}")
    if isinstance(error, RayTaskError):
        return Outcome(end=End.FAILED, error=_first_line(error.cause), traceback=str(error))
    if failure := recorded_failure(task.path, task.attempt):
        return failure
    lost = f"its worker died ({type(error).__name__}: {_first_line(error)})"
    crash = _noted_crash(task) if isinstance(error, WorkerCrashedError) else None
    if crash is None:
        return Outcome(end=End.LOST, error=lost)
    return Outcome(end=End.LOST, error=crash.phrase, crash=crash.phrase)


def _noted_crash(task: Task) -> Crash | None:
    """The crash of the task's worker. What cannot be read or appended is logged: the outcome is what counts."""
    try:
        crash = take_crash(crash_name(task.path, task.attempt))
        file = local_log(log_path(task.path, task.attempt))
        if crash is not None and os.path.exists(file):
            with open(file, "a") as opened:
                opened.write(crash.text)
    except OSError as error:
        log.warning("the note of a crash of %s cannot be read: %s", task.id, error)
        return None
    return crash


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
