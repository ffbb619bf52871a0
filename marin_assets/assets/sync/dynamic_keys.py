"""The keys of dynamic sets, as the Dagster instance knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from marin_assets.plan.partition_runs import new_keys
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.dagster_fixes.databases import open_instance


def known_keys(name: str) -> Sequence[str]:
    """The keys of the dynamic set of this name, in the order in which they were added."""
    ensure_dagster_home()
    with open_instance() as instance:
        return instance.get_dynamic_partitions(name)


def add_keys(keys_by_set: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Add to each dynamic set the keys that it lacks, in this order, and return those by the name of the set.

    Raises PartitionKeyError for a new key whose folder another key has; then none is added.
    """
    if not any(keys_by_set.values()):
        return {}
    ensure_dagster_home()
    with open_instance() as instance:
        new = {name: new_keys(name, keys, instance.get_dynamic_partitions(name)) for name, keys in keys_by_set.items()}
        for name, keys in new.items():
            if keys:
                instance.add_dynamic_partitions(name, keys)
    return {name: keys for name, keys in new.items() if keys}


def remove_keys(keys_by_set: Mapping[str, Iterable[str]]) -> None:
    """Remove keys from dynamic sets. Their outputs and their history stay."""
    ensure_dagster_home()
    with open_instance() as instance:
        for name, keys in keys_by_set.items():
            for key in keys:
                instance.delete_dynamic_partition(name, key)
