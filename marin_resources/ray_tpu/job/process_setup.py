"""Set up a job's process before its step: threads, packages, secrets, import path; in an image, compare its code."""

from __future__ import annotations

import os

from marin_resources.ray_tpu.cluster.settings import CodeMode
from marin_resources.ray_tpu.environment.packages import PackagesError, install_packages
from marin_resources.ray_tpu.environment.secrets import SecretError, load_secrets
from marin_resources.ray_tpu.job.local_code import import_code, with_local_scripts
from marin_resources.ray_tpu.job.source_check import SourceMismatchError, check_source
from marin_resources.ray_tpu.shards.connection import thread_count
from marin_resources.storage.output.notes.job_notes import JobNote
from marin_resources.wire.config_json import references_in
from marin_resources.wire.task import Task

SETUP_ERRORS = (PackagesError, SecretError, SourceMismatchError)
"""Why a step cannot start in this process. Each is one sentence."""


def set_up_process(note: JobNote) -> Task:
    """Prepare this process for the task of a note, and return the task as it is on this node. Raises SETUP_ERRORS."""
    task = with_local_scripts(note.task, note.code)
    os.environ.setdefault("OMP_NUM_THREADS", thread_count(task.resources.cpus))
    install_packages(task.packages)
    load_secrets(task.env)
    import_code(note.code)
    if note.code["mode"] == CodeMode.IMAGE:  # shipped code is the submitter's: its package is named by a digest
        check_source(task.facts.get("source_digest"), [task.fn, *sorted(references_in(task.config))])
    return task
