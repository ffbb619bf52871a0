"""The states of the partitions of a step."""

from __future__ import annotations

from collections.abc import Iterable

from marin_assets.step.graph import Node
from marin_resources.storage.output.states import PartitionState, states_of_partitions
from marin_resources.storage.output.store import Store


def partition_states(node: Node, store: Store, keys: Iterable[str] = ()) -> list[PartitionState]:
    """The states of these partitions, of those in the code, and of all that have a folder; in the order of the keys."""
    assert node.step.partitions is not None
    return states_of_partitions(store, node.output, [*(node.step.partitions.fixed_keys or ()), *keys])
