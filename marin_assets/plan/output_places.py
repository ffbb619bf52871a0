"""Whether the outputs of a graph lie inside one another below a store's prefix, whichever links lead there."""

from __future__ import annotations

from marin_assets.step.graph import Graph
from marin_assets.step.placement import refuse_overlaps
from marin_resources.storage.output.store import Store
from marin_resources.types.places import place_of


def refuse_overlapping_outputs(graph: Graph, store: Store) -> None:
    """Raise ConfigError if two outputs are at one place, or one lies inside another."""
    paths = [(store.locate(node.output), node.name) for node in graph]
    refuse_overlaps(paths)
    if any(node.output.override is not None for node in graph):  # others have distinct paths below one prefix
        refuse_overlaps((place_of(path), name) for path, name in paths)
