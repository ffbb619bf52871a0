"""Resolve the placeholders in a config to paths, once the prefix is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.step.graph import Graph, Node
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, MirroredValue, OutputName, VersionedValue, map_leaves
from marin_resources.output import Output
from marin_resources.wire.config_json import EncodeError, encode


def resolve(node: Node, graph: Graph, paths: Mapping[Output, str], prefix: str) -> Any:
    """The node's config with a path for each placeholder. `paths`: output -> its path."""

    def place(leaf: Any) -> Any:
        if isinstance(leaf, Step):
            return paths[graph[leaf].output]
        if isinstance(leaf, InputName):
            if leaf.step is None:
                return below(prefix, leaf.name or "")
            return below(paths[graph[leaf.step].output], leaf.name)
        if isinstance(leaf, OutputName):
            return below(paths[node.output], leaf.name)
        if isinstance(leaf, VersionedValue):
            return leaf.value
        if isinstance(leaf, MirroredValue):
            return _in_the_mirror(map_leaves(leaf.value, place), prefix)
        return leaf

    return map_leaves(node.step.config, place)


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
    if isinstance(leaf, Step | InputName | OutputName | MirroredValue):
        return ""
    return leaf


def _in_the_mirror(path: str, prefix: str) -> str:
    """A path below the prefix exists in every region; any other absolute path or URL stays as it is."""
    inside = path.removeprefix(prefix.rstrip("/") + "/")
    return inside if inside.startswith("/") or "://" in inside else f"mirror://{inside}"


def below(path: str, name: str | None) -> str:
    """`name` below `path`; an absolute name or a URL stays as it is."""
    if not name:
        return path
    if name.startswith("/") or "://" in name:
        return name
    return f"{path.rstrip('/')}/{name}"
