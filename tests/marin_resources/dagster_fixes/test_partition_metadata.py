"""Metadata and tags of many partitions are given to Dagster all at once."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from marin_resources.dagster_fixes.partition_metadata import add_partition_metadata, add_partition_tags

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


def test_the_keys_of_the_run_are_listed_a_few_times_for_many_partitions(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster lists them for each partition to which metadata are added."""
    keys = [f"k{number:03}" for number in range(100)]
    listed = 0
    list_keys = dg.StaticPartitionsDefinition.get_partition_keys_in_range

    def count(self: dg.StaticPartitionsDefinition, *arguments: Any, **options: Any) -> Any:
        nonlocal listed
        listed += 1
        return list_keys(self, *arguments, **options)

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(keys))
    def one(context: dg.AssetExecutionContext) -> None:
        before = listed
        add_partition_metadata(context, {key: {"key": key} for key in keys})
        assert listed - before <= 1

    monkeypatch.setattr(dg.StaticPartitionsDefinition, "get_partition_keys_in_range", count)
    tags = {ASSET_PARTITION_RANGE_START_TAG: keys[0], ASSET_PARTITION_RANGE_END_TAG: keys[-1]}
    result = dg.materialize([one], tags=tags, instance=instance)
    assert {event.materialization.metadata["key"].value for event in result.get_asset_materialization_events()} == {
        *keys
    }


def test_each_partition_has_its_tags(instance: dg.DagsterInstance) -> None:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(KEYS))
    def one(context: dg.AssetExecutionContext) -> None:
        add_partition_tags(context, {key: {"marin/reused": str(key == "a").lower()} for key in KEYS[:2]})

    tags = {ASSET_PARTITION_RANGE_START_TAG: KEYS[0], ASSET_PARTITION_RANGE_END_TAG: KEYS[-1]}
    assert dg.materialize([one], tags=tags, instance=instance).success
    found = [record.asset_materialization for record in instance.fetch_materializations(one.key, limit=9).records]
    assert {each.partition: each.tags.get("marin/reused") for each in found if each is not None} == {
        "a": "true",
        "b/c": "false",
        "d": None,
    }
