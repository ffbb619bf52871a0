"""The stored partitions of steps: their states, and their observed outputs.

Thousands are observed by two listings and their records, which are packed, instead of three files each. A plan shows
them, with their drift. A run reads the status of each that it reuses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from marin_assets.step.graph import Graph, Node
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import look_at_partitions
from marin_resources.storage.output.state_summary import PartitionState, states_of_partitions
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output


def with_partitions(store: Store, nodes: Iterable[Node]) -> list[Node]:
    """The nodes, and in place of a step with partitions a node for each that has a folder, also of a key that its set
    has no more."""
    return [
        member
        for node in nodes
        for member in (
            [node]
            if node.step.partitions is None
            else [dataclasses.replace(node, key=key) for key in store.partitions(node.output)]
        )
    ]


def known_partitions(
    graph: Graph, store: Store, nodes: Iterable[Node], complete: CompleteOutputs
) -> dict[Output, Observed]:
    """The partitions among the outputs of these nodes and their inputs that are complete, or were never begun.

    One whose record cannot be read is left out."""
    nodes = list(nodes)
    outputs = {
        output for node in nodes for output in (node.output, *node.inputs.values()) if output.partition is not None
    }
    own_and_read = ((graph[node.step], *(source for source, _ in node.reads)) for node in nodes)
    keys: dict[Output, list[str]] = {}
    for step in dict.fromkeys(step for several in own_and_read for step in several):
        if step.step.partitions is not None:
            keys[step.output] = [
                output.partition
                for output in outputs
                if (output.name, output.version) == (step.name, step.version.hash) and output.partition is not None
            ]
    return look_at_partitions(store, keys, complete)


def partition_states(node: Node, store: Store, keys: Iterable[str] = ()) -> list[PartitionState]:
    """The states of these partitions, of those in the code, and of all that have a folder; in the order of the keys."""
    assert node.step.partitions is not None
    return states_of_partitions(store, node.output, [*(node.step.partitions.fixed_keys or ()), *keys])
