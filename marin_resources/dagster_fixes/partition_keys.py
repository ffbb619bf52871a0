"""Keys of dynamic sets that cannot be partitions are refused where they are added: by the UI, a sensor or a command.

As published (1.13.27) Dagster takes any text. Two keys that differ in case alone have one folder where case does not
matter, as on macOS; a key such as ".." has none.

No issue is known but dagster-io/dagster#19845: the UI refuses other keys than the API. Without this, two partitions may
share a folder. The context of dynamic sets has no public name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context

from marin_resources.types.partition_key import FoldersOfKeys

PARTITION_TAG = "dagster/partition"
RANGE_START_TAG, RANGE_END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Dagster's tags of a run: its partition, or a range of them."""


def dynamic_partitions_of(instance: dg.DagsterInstance) -> AbstractContextManager[Any]:
    """Within this context a dynamic set of partitions has the keys of the instance. `get_partition_keys` takes the
    instance as an argument; ranges and backfills do not."""
    return partition_loading_context(dynamic_partitions_store=instance)


class ValidatesPartitionKeys:
    """To be mixed into an event log, before Dagster's class."""

    def add_dynamic_partitions(self, partitions_def_name: str, partition_keys: Sequence[str]) -> None:
        """Add the keys. Raises PartitionKeyError for a new one that cannot be a partition beside the others."""
        storage: Any = super()
        folders = FoldersOfKeys(storage.get_dynamic_partitions(partitions_def_name))
        for key in partition_keys:
            folders.require_free(key, f"the set {partitions_def_name!r}")
        storage.add_dynamic_partitions(partitions_def_name, partition_keys)
