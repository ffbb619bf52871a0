"""Validate a graph before Dagster sees it: each step must be able to be an asset and a task. Dagster is not loaded."""

from __future__ import annotations

from marin_assets.catalog.asset_key import key_of
from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import check_config
from marin_assets.step.values import ConfigError
from marin_resources.types.errors import InvalidInputError
from marin_resources.wire.reference import reference_to

MAX_CHAIN = 900
"""Dagster's own recursion fails on chains of about 1,000 assets (measured on 1.13: 1,000 pass, 1,500 do not)."""


def validate(graph: Graph) -> Graph:
    """Return the graph. Raises ConfigError, EncodeError or UnimportableError for a node that cannot be a task."""
    _refuse_long_chains(graph)
    keys: dict[tuple[str, ...], Node] = {}
    for node in graph:
        try:
            check_config(node)
            reference_to(node.step.fn)
        except InvalidInputError as error:
            raise error.at(node.step.line) from None
        other = keys.setdefault(key_of(node), node)
        if other is not node:
            raise ConfigError(
                f"Steps {other.name!r} and {node.name!r} have the same asset key {'/'.join(key_of(node))!r}. "
                "Give one of them another key."
            ).at(node.step.line)
    return graph


def _refuse_long_chains(graph: Graph) -> None:
    length: dict[Node, int] = {}
    for node in graph:
        length[node] = 1 + max((length[dependency] for dependency in node.dependencies), default=0)
        if length[node] > MAX_CHAIN:
            raise ConfigError(
                f"Step {node.name!r} ends a chain of {length[node]} steps, and Dagster takes at most {MAX_CHAIN}. "
                "Let one step do the work of several, or read an earlier output by its hardcoded path."
            ).at(node.step.line)
