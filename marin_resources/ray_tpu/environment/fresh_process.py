"""Whether a task needs a process of its own, in which no other task has run or will run."""

from __future__ import annotations

from marin_resources.ray_tpu.environment.extras import FRESH_PROCESS_EXTRAS
from marin_resources.wire.task import Task


def needs_fresh_process(task: Task) -> bool:
    """Whether the task leaves its process unusable for others: by a device, libraries that keep memory, packages on the
    import path, or a time limit that kills the process."""
    spoils = task.resources.gpu or task.resources.tpu or task.packages or task.timeout_s
    return bool(spoils) or not FRESH_PROCESS_EXTRAS.isdisjoint(task.extras)
