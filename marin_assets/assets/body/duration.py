"""Duration of a step's last computation, as Dagster's history of its asset has it."""

from __future__ import annotations

import dagster as dg

LONG_S = 600.0
"""A step that took longer is a job of its own on a cluster: it then outlives the head, and everything else."""


def was_long_running(instance: dg.DagsterInstance, key: dg.AssetKey, long_s: float = LONG_S) -> bool:
    """Whether the last recorded computation of the asset took longer. False without a history. Blocks."""
    event = instance.get_latest_materialization_event(key)
    recorded = event.asset_materialization.metadata.get("compute_s") if event and event.asset_materialization else None
    return recorded is not None and float(recorded.value) > long_s  # type: ignore[arg-type]
