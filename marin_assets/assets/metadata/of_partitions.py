"""Metadata of the partitions of a run, given to Dagster all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.execution.context.metadata_logging import AssetMetadataHandle, OutputMetadataAccumulator


def add_partition_metadata(context: dg.AssetExecutionContext, metadata: Mapping[str, Mapping[str, Any]]) -> None:
    """Add metadata to the materialization of each partition: key -> metadata.

    As `context.add_asset_metadata(…, partition_key=…)` for each. That lists the keys of the run and copies all metadata
    so far at every call (1.13.27), which takes a minute for 10,000 partitions.
    """
    step, key = context.get_step_execution_context(), context.assets_def.key
    known = dict(step._metadata_accumulator.per_output_metadata)
    for name, each in metadata.items():
        known[AssetMetadataHandle(asset_key=key, partition_key=name)] = dict(each)
    step._metadata_accumulator = OutputMetadataAccumulator(per_output_metadata=known)
