"""Whether each step of a graph can be an asset and a task: asked before Dagster sees it, without loading Dagster."""

from __future__ import annotations

from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import check_config
from marin_assets.step.values import ConfigError
from marin_resources.wire.reference import reference_to

MAX_CHAIN = 900
"""Dagster's own recursion dies on chains of about 1,000 assets (measured on 1.13: 1,000 pass, 1,500 do not)."""


def validate(graph: Graph) -> Graph:
    """The graph, if every node of it can be an asset and a task. Raises ConfigError or a kin of it."""
    _refuse_long_chains(graph)
    keys: dict[tuple[str, ...], Node] = {}
    for node in graph:
        check_config(node)
        reference_to(node.step.fn)
        other = keys.setdefault(key_of(node), node)
        if other is not node:
            raise ConfigError(
                f"Steps {other.name!r} and {node.name!r} have the same asset key {node.step.key!r}. "
                "Give one of them another key."
            )
    return graph


def key_of(node: Node) -> tuple[str, ...]:
    """The segments of the asset's key: the step's own, or its name's."""
    return tuple(node.step.key or node.name.split("/"))


def _refuse_long_chains(graph: Graph) -> None:
    length: dict[Node, int] = {}
    for node in graph:
        length[node] = 1 + max((length[dependency] for dependency in node.dependencies), default=0)
        if length[node] > MAX_CHAIN:
            raise ConfigError(
                f"Step {node.name!r} ends a chain of {length[node]} steps, and Dagster takes at most {MAX_CHAIN}. "
                "Let one step do the work of several, or read an earlier output by its hardcoded path."
            )
