"""The partitions that are complete as far as their markers say: thousands by two listings, instead of three files each.

A plan shows them. A run reads the status of each that it reuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from marin_assets.step.graph import Graph, Node
from marin_resources.output import Observed, Output, Status
from marin_resources.storage.output.store import Store


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
