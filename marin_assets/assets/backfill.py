"""Backfills: requests to Dagster's daemon to materialize partitions of assets."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dagster as dg

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.version_tags import DATA_VERSION
from marin_assets.step.graph import Graph, Node
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.settings import ensure_dagster_home

BACKFILL_DAEMON = "BACKFILL"
SHOWN_NAMES = 3


def request_backfill(
    graph: Graph, wanted: Mapping[Node, Sequence[str]], tags: Mapping[str, str] | None = None
) -> tuple[str, bool]:
    """Request one backfill of nodes of the code location, each with the keys of its partitions; none for a node without
    them. Inputs are made first.

    Return its id, and whether a daemon is running that will carry it out.
    """
    from dagster._core.definitions.partitions.context import partition_loading_context
    from dagster._core.definitions.selector import PartitionsByAssetSelector
    from dagster._core.execution.backfill import PartitionBackfill
    from dagster._core.utils import make_new_backfill_id
    from dagster._daemon.controller import get_daemon_statuses

    asset_graph = definitions_of(graph, {}).resolve_asset_graph()
    ensure_dagster_home()
    # the context is for the keys of dynamic sets
    with open_instance() as instance, partition_loading_context(dynamic_partitions_store=instance):
        backfill = PartitionBackfill.from_partitions_by_assets(
            backfill_id=make_new_backfill_id(),
            asset_graph=asset_graph,
            backfill_timestamp=time.time(),
            tags=dict(tags or {}),
            dynamic_partitions_store=instance,
            partitions_by_assets=[
                PartitionsByAssetSelector(asset_key=asset_key(node), partitions=_selector(keys))
                for node, keys in wanted.items()
            ],
            title=_title(wanted),
            description=None,
            run_config=None,
        )
        instance.add_backfill(backfill)
        [daemon] = get_daemon_statuses(instance, [BACKFILL_DAEMON]).values()
        return backfill.backfill_id, bool(daemon.healthy)


def _selector(keys: Sequence[str]) -> Any:
    from dagster._core.definitions.selector import PartitionRangeSelector, PartitionsSelector

    return PartitionsSelector([PartitionRangeSelector(start=key, end=key) for key in keys]) if keys else None


def _title(wanted: Mapping[Node, Sequence[str]]) -> str:
    names = [node.name for node in wanted]
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    count = sum(len(keys) for keys in wanted.values())
    return f"{', '.join(names[:SHOWN_NAMES])}{more}: {count} partition{'s' * (count != 1)}"


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
