"""Store the request of a backfill, for Dagster's daemon.

Dagster (1.13.27) has the command `dagster job backfill` for one job with one set of partitions, and GraphQL where a
webserver runs. A Python API was proposed and closed (dagster-io/dagster#26731). Without this, `marin backfill` needs a
webserver.
"""

from __future__ import annotations

import random
import string
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from marin_resources.dagster_fixes.partition_keys import dynamic_partitions_of


def store_backfill(
    instance: dg.DagsterInstance,
    asset_graph: Any,
    keys: Mapping[dg.AssetKey, Sequence[str]],
    *,
    title: str,
    tags: Mapping[str, str],
) -> str:
    """Request the partitions of each asset; an asset without keys has no partitions. Return the backfill's id."""
    # late, for their weight
    from dagster._core.definitions.selector import PartitionsByAssetSelector
    from dagster._core.execution.backfill import PartitionBackfill

    with dynamic_partitions_of(instance):
        backfill = PartitionBackfill.from_partitions_by_assets(
            backfill_id="".join(random.choices(string.ascii_lowercase, k=8)),
            asset_graph=asset_graph,
            backfill_timestamp=time.time(),
            tags=dict(tags),
            dynamic_partitions_store=instance,
            partitions_by_assets=[
                PartitionsByAssetSelector(asset_key=asset, partitions=_selector(partitions))
                for asset, partitions in keys.items()
            ],
            title=title,
            description=None,
            run_config=None,
        )
        instance.add_backfill(backfill)
    return backfill.backfill_id


def _selector(keys: Sequence[str]) -> Any:
    from dagster._core.definitions.selector import PartitionRangeSelector, PartitionsSelector

    return PartitionsSelector([PartitionRangeSelector(start=key, end=key) for key in keys]) if keys else None
