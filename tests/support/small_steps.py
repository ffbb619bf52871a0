"""The batch jobs of small steps: whose a step is, and which process."""

from __future__ import annotations

import psutil
from orchestrator import note_of

from marin_resources.storage.output.notes.job_notes import BatchJob


def batch_job_of(path: str, attempt: int = 1) -> BatchJob:
    """The batch job of an attempt at the output."""
    batch_job = note_of(path, attempt).batch_job
    assert batch_job is not None
    return batch_job


def process_of(batch_job: BatchJob) -> psutil.Process:
    """The process of the batch job itself."""
    [found] = [
        each
        for each in psutil.process_iter(["cmdline"])
        if batch_job.task_queue in (each.info["cmdline"] or []) and "sh" not in each.name()
    ]
    return found
