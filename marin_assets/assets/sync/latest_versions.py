"""Tags and versions of each node's newest materialization in Dagster's history, by a few queries for thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from marin_assets.assets.factory import asset_key
from marin_assets.assets.version_tags import DATA_VERSION, DRIFT
from marin_assets.step.graph import Node

AT_ONCE = 500
"""Events in one query: databases limit the variables of one."""


def tags_of(instance: dg.DagsterInstance, nodes: Sequence[Node]) -> dict[str, Mapping[str, str]]:
    """Name of a node -> the tags of its asset's newest materialization. A node without one is left out."""
    names = {asset_key(node): node.name for node in nodes}
    events = instance.get_latest_materialization_events(list(names)) if names else {}
    materializations = {key: event.asset_materialization for key, event in events.items() if event is not None}
    return {
        names[key]: materialization.tags or {}
        for key, materialization in materializations.items()
        if materialization is not None
    }


def versions_of_partitions(instance: dg.DagsterInstance, node: Node) -> dict[str, str | None]:
    """Key of a partition -> the version of its newest materialization. A partition without one is left out."""
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        asset_key(node), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
    )
    return {key: key_tags.get(DATA_VERSION) for key, key_tags in tags.items()}


def partitions_with_drift(instance: dg.DagsterInstance, node: Node) -> set[str]:
    """The keys of the partitions of which Dagster shows drift."""
    key = asset_key(node)
    newest = instance.event_log_storage.get_latest_storage_id_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION
    )
    drifting: set[str] = set()
    ids_of_all = list(newest.values())
    for begin in range(0, len(ids_of_all), AT_ONCE):
        ids = ids_of_all[begin : begin + AT_ONCE]
        records = dg.AssetRecordsFilter(key, storage_ids=ids)
        for record in instance.fetch_materializations(records, limit=len(ids)).records:
            if record.asset_materialization is not None and DRIFT in (record.asset_materialization.tags or {}):
                drifting.add(str(record.partition_key))
    return drifting
