"""Resolve the placeholders in a config to paths, once the prefix is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marin_assets.step.graph import Graph, Node
from marin_assets.step.partitions.reads import read_of
from marin_assets.step.partitions.this_partition import at_key, value_of
from marin_assets.step.step import Step
from marin_assets.step.values import (
    InputName,
    InputPartitions,
    MirroredValue,
    OutputName,
    PartitionName,
    PartitionsFolder,
    Placeholder,
    VersionedValue,
    WindowName,
    map_leaves,
)
from marin_resources.types.output import Output, below
from marin_resources.wire.config_json import EncodeError, encode


def resolve(
    node: Node,
    graph: Graph,
    locate: Callable[[Output], str],
    prefix: str,
    folder_of: Callable[[Output], str] | None = None,
) -> Any:
    """The node's config with a value for each placeholder. `locate` returns the path of an output, `folder_of` the
    folder of all partitions of one; without `folder_of`, `locate` returns that too."""

    def place(leaf: Any) -> Any:
        if isinstance(leaf, Step):
            return place(InputName(leaf))
        if isinstance(leaf, InputName) and leaf.step is None:
            return below(prefix, leaf.name or "")
        if isinstance(leaf, InputName | InputPartitions):
            return _input_paths(leaf, node, graph, locate)
        if isinstance(leaf, PartitionsFolder):
            return (folder_of or locate)(graph[leaf.step].output)
        if isinstance(leaf, OutputName):
            return below(locate(node.output), leaf.name)
        if isinstance(leaf, PartitionName | WindowName):
            return value_of(leaf, node.step.partitions, node.key or "", prefix)
        if isinstance(leaf, VersionedValue):
            return leaf.value
        if isinstance(leaf, MirroredValue):
            return map_leaves(map_leaves(leaf.value, place), lambda path: _in_the_mirror(path, prefix))
        return leaf

    return map_leaves(node.step.config, place)


def _input_paths(
    leaf: InputName | InputPartitions, node: Node, graph: Graph, locate: Callable[[Output], str]
) -> str | list[str]:
    """The path of an input, or the paths of its partitions."""
    source = graph[leaf.step].output  # type: ignore[index]
    read = read_of(node.step.partitions, leaf, f"Step {node.name!r} config")
    outputs = [source if key is None else source.at(key) for key in read.keys(node.key)]
    name = at_key(leaf.name, node.key)
    paths = [below(locate(output), name) for output in outputs]
    return paths if read.is_list else paths[0]


def mirror_budget_gb(step: Step) -> float | None:
    """GB that the step may transfer from other regions: the largest budget in its config; None: no mirrored path."""
    budgets: list[float] = []

    def note(leaf: Any) -> Any:
        if isinstance(leaf, MirroredValue):
            budgets.append(leaf.budget_gb)
        return leaf

    map_leaves(step.config, note)
    return max(budgets, default=None)


def check_config(node: Node) -> None:
    """Raise EncodeError, which names step and field, for a config that cannot be sent to a worker as JSON."""
    try:
        encode(map_leaves(node.step.config, _stand_in), "config")
    except EncodeError as error:
        raise EncodeError(f"Step {node.name!r} {error}") from None


def _stand_in(leaf: Any) -> Any:
    if isinstance(leaf, VersionedValue):
        return leaf.value
    if isinstance(leaf, Step | Placeholder):
        return ""
    return leaf


def _in_the_mirror(path: str, prefix: str) -> str:
    """A path below the prefix exists in every region; any other absolute path or URL stays as it is."""
    inside = path.removeprefix(prefix.rstrip("/") + "/")
    return inside if inside.startswith("/") or "://" in inside else f"mirror://{inside}"
