"""Metadata that are given to Dagster all at once are those that are given one by one."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from marin_resources.dagster_fixes.partition_metadata import add_partition_metadata

KEYS = ["a", "b/c", "d"]


def materialized(instance: dg.DagsterInstance, at_once: bool) -> list[tuple[str | None, Mapping[str, Any]]]:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(KEYS))
    def one(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        context.add_asset_metadata({"whole": 1})
        metadata: dict[str, dict[str, Any]] = {
            key: {"key": key, "path": dg.MetadataValue.path(key)} for key in KEYS[:2]
        }
        if at_once:
            add_partition_metadata(context, metadata)
        else:
            for key, each in metadata.items():
                context.add_asset_metadata(each, partition_key=key)
        return dg.MaterializeResult()

    tags = {ASSET_PARTITION_RANGE_START_TAG: KEYS[0], ASSET_PARTITION_RANGE_END_TAG: KEYS[-1]}
    result = dg.materialize([one], tags=tags, instance=instance)
    assert result.success
    events = result.get_asset_materialization_events()
    return sorted(
        ((event.partition, event.materialization.metadata) for event in events), key=lambda each: str(each[0])
    )


def test_metadata_given_at_once_are_those_given_one_by_one(instance: dg.DagsterInstance) -> None:
    found = materialized(instance, at_once=True)
    assert found == materialized(instance, at_once=False)
    assert [key for key, _ in found] == KEYS
    assert [sorted(metadata) for _, metadata in found] == [
        ["key", "path", "whole"],
        ["key", "path", "whole"],
        ["whole"],
    ]
