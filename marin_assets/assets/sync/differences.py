"""The differences between the store and Dagster's history: outputs that Dagster does not know, and outputs that have
vanished.

In:  nodes and their store.   Out: the nodes that differ.   Written: the markers that complete outputs lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from marin_assets.assets.sync.latest_versions import tags_of, versions_of_partitions
from marin_assets.assets.version_tags import DATA_VERSION
from marin_assets.plan.partitions import partition_states
from marin_assets.step.graph import Node
from marin_assets.step.values import ConfigError
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import mark_complete
from marin_resources.storage.output.state_summary import UNFINISHED, State, state_of
from marin_resources.storage.output.store import Store


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Nodes, and nodes of partitions, inputs first."""

    unknown: list[Node] = field(default_factory=list)
    """Complete in the store, and Dagster's newest materialization is of another version, or does not exist."""
    vanished: list[Node] = field(default_factory=list)
    """Dagster's newest materialization is of this version, and the store has no complete output, nor a process that
    computes it."""
    damaged: list[str] = field(default_factory=list)
    """A sentence for each output with a damaged control file. Its history in Dagster is left as it is."""

    def add(self, node: Node, state: State, reported: bool) -> None:
        if state is State.COMPLETE and not reported:
            self.unknown.append(node)
        elif state in UNFINISHED and reported:
            self.vanished.append(node)


def differences(instance: dg.DagsterInstance, nodes: Sequence[Node], store: Store) -> Differences:
    """Compare the outputs of these nodes in the store, in the order of their graph, with Dagster's history.

    The control files of each are read, also of thousands: markers know nothing of a damaged one. Raises
    UnavailableError.
    """
    whole = [node for node in nodes if node.step.partitions is None]
    looked = store.look(node.output for node in whole)
    mark_complete(store, CompleteOutputs(store.prefix), looked)
    tags = tags_of(instance, whole)
    differing = Differences()
    for node in nodes:
        if node.step.partitions is not None:
            _add_partitions(differing, instance, node, store)
            continue
        seen = looked[node.output]
        if seen.damage:
            differing.damaged.append(seen.damage)
        differing.add(node, state_of(seen), tags.get(node.name, {}).get(DATA_VERSION) == node.version.hash)
    return differing


def _add_partitions(differing: Differences, instance: dg.DagsterInstance, node: Node, store: Store) -> None:
    versions = versions_of_partitions(instance, node)
    reported = [key for key, version in versions.items() if version == node.version.hash]
    states = partition_states(node, store, reported)
    looked = store.look(node.output.at(partition.key) for partition in states if partition.state is State.COMPLETE)
    damaged = {str(output.partition): seen.damage for output, seen in looked.items() if seen.damage}
    for partition in states:
        if partition.state is State.BLOCKED or partition.key in damaged:
            differing.damaged.append(damaged.get(partition.key, partition.error))
        elif _has_key(node, partition.key):
            differing.add(node.at(partition.key), partition.state, versions.get(partition.key) == node.version.hash)


def _has_key(node: Node, key: str) -> bool:
    """Whether the set of a node's partitions has this key. Dagster does not show a key that was removed from it."""
    assert node.step.partitions is not None
    try:
        node.step.partitions.require(key)
    except ConfigError:
        return False
    return True
