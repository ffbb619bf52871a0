"""The tags of the newest materializations of thousands of assets, by some queries.

`DagsterInstance.get_latest_materialization_events` (1.13.27) builds every object of every event, with all of its
metadata: 1 ms for each. Here the stored JSON is parsed, and of each event only its tags are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dagster import AssetKey, AssetRecordsFilter, DagsterEventType, DagsterInstance
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import AssetKeyTable, SqlEventLogStorageTable
from sqlalchemy import select

AT_ONCE = 500
"""Keys in one query: databases limit the variables of one."""


def latest_tags(instance: DagsterInstance, keys: Sequence[AssetKey]) -> dict[AssetKey, Mapping[str, str]]:
    """The tags of the newest materialization of each asset. An asset without one, or that was wiped, is left out."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return _by_events(instance, keys)
    found: dict[AssetKey, Mapping[str, str]] = {}
    unknown: list[AssetKey] = []
    by_text = {key.to_string(): key for key in keys}
    texts = list(by_text)
    for begin in range(0, len(texts), AT_ONCE):
        some = texts[begin : begin + AT_ONCE]
        query = select(AssetKeyTable.c.asset_key, AssetKeyTable.c.last_materialization).where(
            AssetKeyTable.c.asset_key.in_(some)
        )
        with storage.index_connection() as connection:
            rows = connection.execute(query).fetchall()
        for text, event in rows:
            if event is None:
                continue
            tags = _tags_in(json.loads(event))
            if tags is None:
                unknown.append(by_text[text])
            else:
                found[by_text[text]] = tags
    return {**found, **_by_events(instance, unknown)}


def partitions_tagged(instance: DagsterInstance, key: AssetKey, tag: str) -> set[str]:
    """The partitions of an asset whose newest materialization has this tag. The database finds the events with the text
    of the tag, so that few of thousands are parsed."""
    storage = instance.event_log_storage
    newest = list(storage.get_latest_storage_id_by_partition(key, DagsterEventType.ASSET_MATERIALIZATION).values())
    found: set[str] = set()
    for begin in range(0, len(newest), AT_ONCE):
        some = newest[begin : begin + AT_ONCE]
        if isinstance(storage, SqlEventLogStorage):
            query = select(SqlEventLogStorageTable.c.id).where(
                SqlEventLogStorageTable.c.id.in_(some), SqlEventLogStorageTable.c.event.contains(json.dumps(tag))
            )
            with storage.index_connection() as connection:
                some = list(connection.execute(query).scalars())
        records = AssetRecordsFilter(key, storage_ids=some)
        for record in instance.fetch_materializations(records, limit=len(some)).records if some else ():
            tags = (record.asset_materialization and record.asset_materialization.tags) or {}
            found |= {str(record.partition_key)} if tag in tags else set()
    return found


def _tags_in(stored: Any) -> Mapping[str, str] | None:
    """The tags in an event's stored form; None for a form that another version of Dagster has written."""
    try:
        materialization = stored["event_log_entry"]["dagster_event"]["event_specific_data"]["materialization"]
        tags = materialization["tags"]
    except (KeyError, TypeError):
        return None
    return tags if isinstance(tags, dict) and all(isinstance(each, str) for each in tags.values()) else None


def _by_events(instance: DagsterInstance, keys: Sequence[AssetKey]) -> dict[AssetKey, Mapping[str, str]]:
    events = instance.get_latest_materialization_events(list(keys)) if keys else {}
    return {
        key: event.asset_materialization.tags or {}
        for key, event in events.items()
        if event is not None and event.asset_materialization is not None
    }
