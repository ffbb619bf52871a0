"""The cluster's back end, with what a Dagster run and its instance know."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from marin_resources.orchestrator.log_positions import LogPositions
from marin_resources.orchestrator.run_launcher import is_over
from marin_resources.ray_tpu.cluster.backend import ClusterBackend
from marin_resources.ray_tpu.cluster.settings import ClusterSettings


def cluster_backend(
    settings: ClusterSettings, run: dg.DagsterRun, instance: dg.DagsterInstance, say: Callable[[str], None]
) -> ClusterBackend:
    """The back end for the jobs of one run."""

    def run_is_over(run_id: str) -> bool:
        other = instance.get_run_by_id(run_id)
        return other is not None and is_over(other)

    return ClusterBackend(settings, run_id=run.run_id, say=say, positions=LogPositions(instance), is_over=run_is_over)
