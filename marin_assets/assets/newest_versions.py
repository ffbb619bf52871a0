"""What Dagster's history says of the newest materialization of each node, by some queries for thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from marin_assets.assets.factory import asset_key
from marin_assets.assets.version_tags import DATA_VERSION, DRIFT
from marin_assets.step.graph import Node
from marin_resources.dagster_fixes.latest_tags import latest_tags, partitions_tagged


def tags_of(instance: dg.DagsterInstance, nodes: Sequence[Node]) -> dict[str, Mapping[str, str]]:
    """Name of a node -> the tags of its asset's newest materialization. What has none is left out."""
    names = {asset_key(node): node.name for node in nodes}
    return {names[key]: tags for key, tags in latest_tags(instance, list(names)).items()}


def versions_of_partitions(instance: dg.DagsterInstance, node: Node) -> dict[str, str | None]:
    """Key of a partition -> the version of its newest materialization. What has none is left out."""
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        asset_key(node), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
    )
    return {key: each.get(DATA_VERSION) for key, each in tags.items()}


def partitions_with_drift(instance: dg.DagsterInstance, node: Node) -> set[str]:
    """The keys of the partitions of which Dagster shows drift."""
    return partitions_tagged(instance, asset_key(node), DRIFT)
