"""What a job's process does before its step: limit threads, get packages and secrets, find the code and compare it."""

from __future__ import annotations

import math
import os

from marin_resources.ray_tpu.environment.packages import PackagesError, provide_packages
from marin_resources.ray_tpu.environment.secrets import SecretError, provide
from marin_resources.ray_tpu.job.code_here import import_code, task_here
from marin_resources.ray_tpu.job.source_check import SourceMismatchError, check_source
from marin_resources.storage.output.job_notes import JobNote
from marin_resources.wire.config_json import references_in
from marin_resources.wire.task import Task

REFUSALS = (PackagesError, SecretError, SourceMismatchError)
"""Why a step cannot begin here. Each is a sentence."""


def prepare(note: JobNote) -> Task:
    """Make this process fit for the task of a note; returns the task as it is on this node. Raises REFUSALS."""
    task = task_here(note.task, note.code)
    limit_threads(task.resources.cpus)
    provide_packages(task.packages)
    provide(task.env)
    import_code(note.code)
    check_source(task.facts.get("source_digest"), [task.fn, *sorted(references_in(task.config))])
    return task


def limit_threads(cpus: float) -> None:
    """As Ray does it in its tasks: numerical libraries start a thread for each CPU of the node, if nobody says less."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(math.floor(cpus), 1)))
