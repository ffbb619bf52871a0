"""The runs of one sensor or schedule that are not over."""

from __future__ import annotations

import dagster as dg

SENSOR, SCHEDULE = "marin/sensor", "marin/schedule"
"""Tags of runs: the name of what has requested them."""
STARTED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
    dg.DagsterRunStatus.SUSPENDED,
]
IN_PROGRESS = [*STARTED, dg.DagsterRunStatus.QUEUED]


def in_progress(instance: dg.DagsterInstance, tag: str, name: str) -> int:
    """The number of runs with this tag that are queued or under way."""
    return len(instance.get_run_ids(dg.RunsFilter(statuses=IN_PROGRESS, tags={tag: name})))
