"""Metadata and tags of the partitions of a run, given to Dagster all at once.

Dagster (1.13.27) lists the keys of the run and copies all metadata so far at each call of `add_asset_metadata`, and has
no tags of one partition. No issue is known since dagster-io/dagster#26562 added that method. Without this, the metadata
of 10,000 partitions take a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from dagster._core.execution.context.metadata_logging import AssetMetadataHandle, OutputMetadataAccumulator


def add_partition_metadata(context: dg.AssetExecutionContext, metadata: Mapping[str, Mapping[str, Any]]) -> None:
    """Add metadata to the materialization of each partition: key -> metadata.

    As `context.add_asset_metadata(…, partition_key=…)` for each. That lists the keys of the run and copies all metadata
    so far at every call (1.13.27), which takes a minute for 10,000 partitions.
    """
    step, key = context.get_step_execution_context(), context.assets_def.key
    accumulated = dict(step._metadata_accumulator.per_output_metadata)
    for partition, added in metadata.items():
        accumulated[AssetMetadataHandle(asset_key=key, partition_key=partition)] = dict(added)
    step._metadata_accumulator = OutputMetadataAccumulator(per_output_metadata=accumulated)


def add_partition_tags(context: dg.AssetExecutionContext, tags: Mapping[str, Mapping[str, str]]) -> None:
    """Add tags to the materialization of each partition: key -> tags.

    Dagster (1.13.27) has no tags of one partition: it copies those of the result to each. So they are added to an event
    of this step before it is logged.
    """
    context.get_step_execution_context().log.addFilter(_tagged(context.asset_key, tags))


def _tagged(
    asset: dg.AssetKey, tags: Mapping[str, Mapping[str, str]]
) -> Callable[[logging.LogRecord], bool | logging.LogRecord]:
    def add(record: logging.LogRecord) -> bool:
        event = getattr(record, "dagster_event", None)
        if isinstance(event, dg.DagsterEvent) and event.is_step_materialization and event.asset_key == asset:
            event_tags = event.step_materialization_data.materialization.tags
            assert isinstance(event_tags, dict)
            event_tags.update(tags.get(event.partition or "", {}))
        return True

    return add
