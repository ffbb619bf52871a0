"""Dagster forgets the materializations of some partitions of an asset, and keeps those of the others.

As published (1.13.27) Dagster's event logs forget whole assets only: `wipe_asset_partitions` is not implemented, here
and behind the button of the UI. Here the asset's events of these partitions no longer name the asset. They stay in the
logs of their runs.

See dagster-io/dagster#14749. Without this, a removed partition stays complete in Dagster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagster import AssetKey, DagsterEventType, DagsterInstance
from dagster._core.storage.event_log.schema import AssetEventTagsTable, AssetKeyTable
from sqlalchemy import select

from marin_resources.dagster_fixes.event_batches import EVENTS


class WipesPartitions:
    """To be mixed into an event log, before Dagster's class."""

    def wipe_asset_partitions(self, asset_key: AssetKey, partition_keys: Sequence[str]) -> None:
        """Forget the newest materialization of each of these partitions, and all that was before it."""
        _forget(self, asset_key, partition_keys)


def wipe_partitions(instance: DagsterInstance, asset_key: AssetKey, partition_keys: Sequence[str]) -> None:
    """Wipe partitions of an asset in any instance, also one with an event log as published."""
    storage = instance.event_log_storage
    if hasattr(storage, "index_transaction") and not isinstance(storage, WipesPartitions):
        _forget(storage, asset_key, partition_keys)
    else:
        instance.wipe_asset_partitions(asset_key, partition_keys)


def _forget(storage: Any, asset_key: AssetKey, partition_keys: Sequence[str]) -> None:
    newest = storage.get_latest_storage_id_by_partition(asset_key, DagsterEventType.ASSET_MATERIALIZATION)
    cached = {"cached_status_data": None} if storage.can_read_asset_status_cache() else {}
    events, tags, text = EVENTS, AssetEventTagsTable, asset_key.to_string()
    with storage.index_transaction() as connection:
        for key in partition_keys:
            if key not in newest:
                continue
            old = (events.c.asset_key == text, events.c.partition == key, events.c.id <= newest[key])
            connection.execute(tags.delete().where(tags.c.event_id.in_(select(events.c.id).where(*old))))
            connection.execute(events.update().values(asset_key=None, partition=None).where(*old))
        # the newest remaining event is then looked up, as after the wipe of an asset
        connection.execute(
            AssetKeyTable.update().values(last_materialization=None, **cached).where(AssetKeyTable.c.asset_key == text)
        )
