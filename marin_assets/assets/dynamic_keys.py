"""The keys of dynamic sets, as the Dagster instance knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.sets import DynamicPartitions, Partitions
from marin_resources.orchestrator.databases import open_instance
from marin_resources.partition_key import require_distinct
from marin_resources.settings import ensure_dagster_home


def known_keys(name: str) -> Sequence[str]:
    """The keys of the dynamic set of this name, in the order in which they were added."""
    ensure_dagster_home()
    with open_instance() as instance:
        return instance.get_dynamic_partitions(name)


def add_keys(partitions: Partitions | None, keys: Iterable[str]) -> dict[str, list[str]]:
    """Add the keys that the dynamic sets within `partitions` lack, and return them by the name of the set.

    Raises PartitionKeyError for a key whose folder another key has.
    """
    wanted = list(keys)
    if isinstance(partitions, ProductPartitions):
        parts = [partitions.split(key) for key in wanted]
        found: dict[str, list[str]] = {}
        for name, dimension in partitions.dimensions.items():
            found |= add_keys(dimension, dict.fromkeys(part[name] for part in parts))
        return found
    if not isinstance(partitions, DynamicPartitions) or not wanted:
        return {}
    ensure_dagster_home()
    with open_instance() as instance:
        known = instance.get_dynamic_partitions(partitions.name)
        there = frozenset(known)
        new = [key for key in wanted if key not in there]
        require_distinct([*known, *new], f"The set {partitions.name!r}")
        if new:
            instance.add_dynamic_partitions(partitions.name, new)
    return {partitions.name: new} if new else {}
