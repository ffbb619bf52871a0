"""The partitions that are complete as far as their markers say: thousands by two listings, instead of three files each.

A plan shows them. A run reads the status of each that it reuses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from marin_assets.step.graph import Graph, Node
from marin_resources.output import Observed, Output, Status
from marin_resources.storage.output.store import Store


def with_partitions(store: Store, nodes: Iterable[Node]) -> list[Node]:
    """The nodes, and in place of a step with partitions a node for each that has a folder, also of a key that its set
    has no more."""
    return [
        one
        for node in nodes
        for one in (
            [node]
            if node.step.partitions is None
            else [dataclasses.replace(node, key=key) for key in store.partitions(node.output)]
        )
    ]


def known_complete(graph: Graph, store: Store, nodes: Iterable[Node]) -> dict[Output, Observed]:
    """The complete partitions of the steps of these nodes, and of what they read. They have no record here."""
    steps = dict.fromkeys(
        other for node in nodes for other in (graph[node.step], *(source for source, _ in node.reads))
    )
    found = (
        whole.output.at(key)
        for whole in steps
        if whole.step.partitions is not None
        for key in store.done_partitions(whole.output)
    )
    return {output: Observed(path=store.locate(output), status=Status.SUCCESS) for output in found}
