"""The id of a job: the same for the same attempt at the same output, so that it is submitted once."""

from __future__ import annotations

import hashlib
import re

from marin_resources.wire.task import Task

NAME_CHARACTERS = 60


def submission_id(task: Task) -> str:
    """For example "documents-fineweb-8c2f3a-0b6ed9c4-a3": step, version, digest of the path, attempt."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", task.output.name).strip("-")[:NAME_CHARACTERS]
    place = hashlib.sha256(f"{task.path} {task.output.identity}".encode()).hexdigest()[:8]
    return f"{name}-{task.output.version}-{place}-a{task.attempt}"
