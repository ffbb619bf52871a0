"""The version of each step in Dagster's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from marin_resources.orchestrator.io_manager import NAME

CODE_VERSION = "dagster/code_version"
"""A tag of a materialization."""


def steps_of(graph: Any) -> list[dg.AssetKey]:
    """The assets that steps make, inputs first."""
    return [key for key in graph.toposorted_asset_keys if NAME in graph.get(key).metadata]


def version_materialized(instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey]) -> dict[dg.AssetKey, str]:
    """The version that each asset without partitions has in its last materialization here; without those of none."""
    versions = {}
    for key, entry in instance.get_latest_materialization_events(keys).items():
        materialization = entry.asset_materialization if entry is not None else None
        version = (materialization.tags or {}).get(CODE_VERSION) if materialization is not None else None
        if version is not None:
            versions[key] = version
    return versions
