"""Run the step of a job's note in this process: the job's own, or one that the job started on a node with devices."""

from __future__ import annotations

import dataclasses
import os
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.job.local_code import has_vanished
from marin_resources.ray_tpu.job.process_setup import SETUP_ERRORS, set_up_process
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation
from marin_resources.ray_tpu.worker.run_task import Placement, run
from marin_resources.storage.output.notes.job_notes import JobNote, add_outcome, note_path, read_note
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

REASON_TIMEOUT_S = 0.5
"""Time limit for reading the reason of a stop: Ray kills the process 3 s after SIGTERM."""


def placement_of(note: JobNote, started_at_s: float, *, in_task: bool = False) -> Placement:
    """Return the placement of a note's task in a process of the job that started then (seconds since 1970).

    `in_task`: the process is that of a Ray task, whose CPUs Ray lends to others while it waits for its shards, and
    whose stdout is not the job's.
    """
    path, resources = note_path(note.task.path, note.attempt), note.task.resources
    batch_job = {"carrier": note.batch_job.job} if note.batch_job else {}
    return Placement(
        started_at_s=started_at_s,
        job={"id": note.submission_id, **batch_job, "dashboard": note.dashboard, "code": dict(note.code)},
        allocation=JobAllocation(cpus=resources.cpus, memory_bytes=resources.memory_bytes, lent_while_waiting=in_task),
        report=lambda outcome: add_outcome(path, outcome),
        stop_reason=lambda: stop_reason(path),
        tee=not in_task,
        in_task=in_task,
    )


def run_in_task(note: JobNote) -> Outcome:
    """Run the step of a note in the process of a Ray task."""
    if note.code.get("image_root"):
        os.chdir(note.code["image_root"])  # as a job's own process; Ray enters a shipped directory by itself
    return run_step(note, placement_of(note, time.time(), in_task=True))


def run_step(note: JobNote, placement: Placement) -> Outcome:
    """Run the step of a note in this process. An error before the step is an outcome too."""
    try:
        outcome = run(set_up_process(note), placement)
        if outcome.end is End.FAILED and has_vanished(note.code):
            return dataclasses.replace(outcome, end=End.LOST, error=f"its code is gone from its node: {outcome.error}")
        return outcome
    except SETUP_ERRORS as error:
        return Outcome(end=End.FAILED, error=str(error))
    except Exception as error:  # any error must reach the runs that wait, not only the job's log
        return outcome_of_job_error(note.task, error)


def outcome_of_job_error(task: Task, error: Exception) -> Outcome:
    """Return the outcome for an error outside of the step's function, without secrets, and print its traceback."""
    redactor = Redactor(secrets_of(task.env))
    text = redactor.text("".join(traceback.format_exception(error)))
    print(text, end="", flush=True)
    return Outcome(end=End.FAILED, error=redactor.text(f"{type(error).__name__}: {error}"), traceback=text)


def stop_reason(path: str) -> str:
    """Return who stopped this job and why, if its note has that and can be read within 0.5 s."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="stop-reason")
    try:
        note = pool.submit(read_note, path).result(REASON_TIMEOUT_S)
    except Exception:  # the store may be unavailable or slow, and the process must end in time
        note = None
    finally:
        pool.shutdown(wait=False)
    return describe_stop(note.stop) if note is not None and note.stop is not None else "stopped from outside (SIGTERM)"


def describe_stop(stop: Mapping[str, Any]) -> str:
    return f"stopped by {stop['by']}: {str(stop['reason']).rstrip('.')}"
