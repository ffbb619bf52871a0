"""The needs of each step's readers: an output is best where they can run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from marin_assets.plan.sites.inputs import urls_in
from marin_assets.step.graph import Graph, Node
from marin_resources.ray_tpu.site import ReaderNeeds


@lru_cache(maxsize=4)
def needs_of_readers(graph: Graph) -> Mapping[Node, tuple[ReaderNeeds, ...]]:
    """Node -> the needs of the steps that read it: first of those that read it directly, then of those that read it
    through others. Equal needs are listed once."""
    direct: dict[Node, dict[ReaderNeeds, None]] = {node: {} for node in graph}
    further: dict[Node, dict[ReaderNeeds, None]] = {node: {} for node in graph}
    for reader in reversed(graph.nodes):  # readers before inputs
        own = ReaderNeeds(resources=reader.step.resources, urls=tuple(urls_in(reader)))
        for node in dict.fromkeys((*reader.dependencies, *reader.pseudo_dependencies)):
            direct[node][own] = None
            further[node] |= {**direct[reader], **further[reader]}
    return {node: tuple({**direct[node], **further[node]}) for node in graph}
