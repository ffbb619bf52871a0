"""The outcome of a Ray task whose worker reported none: it raised, ran out of memory, or is gone."""

from __future__ import annotations

from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task


def outcome_of_error(task: Task, error: BaseException) -> Outcome:
    """Return the outcome of a task for this error of Ray. A worker that killed its own process recorded its failure."""
    from ray.exceptions import OutOfMemoryError, RayTaskError  # late, for its weight

    if isinstance(error, OutOfMemoryError):
        return Outcome(end=End.FAILED, error=f"the machine ran out of memory: {_first_line(error)}")
    if isinstance(error, RayTaskError):
        return Outcome(end=End.FAILED, error=_first_line(error.cause), traceback=str(error))
    lost = Outcome(end=End.LOST, error=f"its worker died ({type(error).__name__}: {_first_line(error)})")
    return recorded_failure(task.path, task.attempt) or lost


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
