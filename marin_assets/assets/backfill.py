"""Backfills: requests to Dagster's daemon to materialize partitions of assets."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import dagster as dg

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.version_tags import DATA_VERSION
from marin_assets.step.graph import Graph, Node
from marin_resources.orchestrator.databases import open_instance
from marin_resources.settings import ensure_dagster_home

BACKFILL_DAEMON = "BACKFILL"


def request_backfill(graph: Graph, nodes: Sequence[Node], keys: Sequence[str]) -> tuple[str, bool]:
    """Request a backfill of these partitions of the nodes, which are in the code location.

    Return its id, and whether a daemon is running that will carry it out.
    """
    from dagster._core.execution.backfill import PartitionBackfill
    from dagster._core.utils import make_new_backfill_id
    from dagster._daemon.controller import get_daemon_statuses

    asset_graph = definitions_of(graph, {}).resolve_asset_graph()
    ensure_dagster_home()
    with open_instance() as instance:
        backfill = PartitionBackfill.from_asset_partitions(
            backfill_id=make_new_backfill_id(),
            asset_graph=asset_graph,
            partition_names=list(keys),
            asset_selection=[asset_key(node) for node in nodes],
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=instance,
            all_partitions=False,
            title=f"{', '.join(node.name for node in nodes)}: {len(keys)} partition{'s' * (len(keys) != 1)}",
            description=None,
            run_config=None,
        )
        instance.add_backfill(backfill)
        [daemon] = get_daemon_statuses(instance, [BACKFILL_DAEMON]).values()
        return backfill.backfill_id, bool(daemon.healthy)


def materialized_at_another_version(node: Node, keys: Collection[str]) -> set[str]:
    """Those of the keys whose last materialization in Dagster's history is of another version of the step."""
    ensure_dagster_home()
    with open_instance() as instance:
        tags = instance.event_log_storage.get_latest_tags_by_partition(
            asset_key(node), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
        )
    return {
        key for key, found in tags.items() if key in keys and found.get(DATA_VERSION) not in (None, node.version.hash)
    }
