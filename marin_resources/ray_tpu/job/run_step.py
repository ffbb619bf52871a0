"""The step of a job's note, in this process: the job's own, or one that the job started on a node with devices."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.job.prepare import REFUSALS, prepare
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.shards.job_allocation import hold
from marin_resources.ray_tpu.worker.run_task import Place, run
from marin_resources.storage.output.job_notes import JobNote, add_outcome, note_path, read_note
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

REASON_S = 0.5
"""Time limit for reading the reason of a stop: there are 3 s in all."""


def place_of(note: JobNote, began_at_s: float) -> Place:
    """The job of a note, for the worker: here, or in a process that the job has begun on another node."""
    path = note_path(note.task.path, note.attempt)
    return Place(
        began_s=began_at_s,
        job={"id": note.submission_id, "dashboard": note.dashboard, "code": dict(note.code)},
        tell=lambda outcome: report(path, outcome),
        stop_reason=lambda: stop_reason(path),
        tee=True,
    )


def do_here(note: JobNote, place: Place, *, lent_while_waiting: bool = False) -> Outcome:
    """The step of a note, in this very process. What keeps it from beginning is an outcome, too."""
    task = note.task
    try:
        with hold(task.resources.cpus, task.resources.memory_bytes, lent_while_waiting=lent_while_waiting):
            return run(prepare(note), place)
    except REFUSALS as error:
        return Outcome(end=End.FAILED, error=str(error))
    except Exception as error:  # whatever it is, those who wait are told, and not only the log of the job
        return failure_of(task, error)


def failure_of(task: Task, error: Exception) -> Outcome:
    """What to tell of an error that is none of the step's function, without secrets; all of it is in the job's log."""
    shown = Redactor(secrets_of(task.env))
    told = shown.text("".join(traceback.format_exception(error)))
    sys.stdout.write(told)
    return Outcome(end=End.FAILED, error=shown.text(f"{type(error).__name__}: {error}"), traceback=told)


def report(path: str, outcome: Outcome) -> None:
    """Add the outcome to the job's note."""
    add_outcome(path, outcome)


def stop_reason(path: str) -> str:
    """Who has stopped this job and why, as far as its note says so and can be read in time."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="stop-reason")
    try:
        note = pool.submit(read_note, path).result(REASON_S)
    except Exception:  # the store may be away or slow; the process has to go all the same
        note = None
    finally:
        pool.shutdown(wait=False)
    return stop_phrase(note.stop) if note is not None and note.stop is not None else "stopped from outside (SIGTERM)"


def stop_phrase(stop: Any) -> str:
    return f"stopped by {stop['by']}: {str(stop['reason']).rstrip('.')}"
