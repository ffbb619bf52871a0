"""Backfills: requests to Dagster's daemon to materialize partitions of assets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import dagster as dg

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.version_tags import DATA_VERSION
from marin_assets.step.graph import Graph, Node
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.dagster_fixes.backfill_request import store_backfill
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.orchestrator.daemon_health import is_daemon_healthy

BACKFILL_DAEMON = "BACKFILL"
SHOWN_NAMES = 3


def request_backfill(
    graph: Graph, requested: Mapping[Node, Sequence[str]], tags: Mapping[str, str] | None = None
) -> tuple[str, bool]:
    """Request one backfill of nodes of the code location, each with the keys of its partitions; none for a node without
    them. Inputs are computed first.

    Return its id, and whether a daemon is running that will carry it out.
    """
    asset_graph = definitions_of(graph, {}).resolve_asset_graph()
    ensure_dagster_home()
    with open_instance() as instance:
        keys = {asset_key(node): tuple(keys) for node, keys in requested.items()}
        backfill_id = store_backfill(instance, asset_graph, keys, title=_title(requested), tags=tags or {})
        return backfill_id, is_daemon_healthy(instance, BACKFILL_DAEMON)


def _title(requested: Mapping[Node, Sequence[str]]) -> str:
    names = [node.name for node in requested]
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    count = sum(len(keys) for keys in requested.values())
    return f"{', '.join(names[:SHOWN_NAMES])}{more}: {count} partition{'s' * (count != 1)}"


def materialized_at_another_version(node: Node, keys: Collection[str]) -> set[str]:
    """The subset of keys whose last materialization in Dagster's history is of another version of the step."""
    ensure_dagster_home()
    with open_instance() as instance:
        tags = instance.event_log_storage.get_latest_tags_by_partition(
            asset_key(node), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
        )
    return {
        key
        for key, key_tags in tags.items()
        if key in keys and key_tags.get(DATA_VERSION) not in (None, node.version.hash)
    }
