"""What came of a task of Ray's whose worker did not tell its outcome: it raised, ran out of memory, or is gone."""

from __future__ import annotations

from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task


def outcome_of_error(task: Task, error: BaseException) -> Outcome:
    """The outcome of a task for which Ray gives this error; a worker that ended its own process noted why before."""
    from ray.exceptions import OutOfMemoryError, RayTaskError

    if isinstance(error, OutOfMemoryError):
        return Outcome(end=End.FAILED, error=f"the machine ran out of memory: {_first_line(error)}")
    if isinstance(error, RayTaskError):
        return Outcome(end=End.FAILED, error=_first_line(error.cause), traceback=str(error))
    lost = Outcome(end=End.LOST, error=f"its worker died ({type(error).__name__}: {_first_line(error)})")
    return recorded_failure(task.path, task.attempt) or lost


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
