"""Keys of dynamic sets that cannot be partitions are refused where they are added: by the UI, a sensor or a command.

As published (1.13.27) Dagster takes any text. Two keys that differ in case alone have one folder where case does not
matter, as on macOS; a key such as ".." has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagster._core.storage.event_log import SqlEventLogStorage

from marin_resources.partition_key import FoldersOfKeys


class ValidatesPartitionKeys(SqlEventLogStorage):
    """To be mixed into an event log, before Dagster's class."""

    def add_dynamic_partitions(self, partitions_def_name: str, partition_keys: Sequence[str]) -> None:
        """Add the keys. Raises PartitionKeyError for a new one that cannot be a partition beside the others."""
        folders = FoldersOfKeys(self.get_dynamic_partitions(partitions_def_name))
        for key in partition_keys:
            folders.require_free(key, f"the set {partitions_def_name!r}")
        super().add_dynamic_partitions(partitions_def_name, partition_keys)
