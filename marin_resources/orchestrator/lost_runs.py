"""A run that failed though none of its steps did: no Ray runs on its machine. A sensor requests such a run again.

marin/ray_gone    the id of the run; Dagster copies the tags of a run to its re-execution, where it has no meaning
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun

TAG = "marin/ray_gone"


def mark_lost(instance: DagsterInstance, run_id: str) -> None:
    """Tag the run, before its step fails."""
    instance.add_run_tags(run_id, {TAG: run_id})


def is_marked_lost(run: DagsterRun) -> bool:
    return run.tags.get(TAG) == run.run_id
