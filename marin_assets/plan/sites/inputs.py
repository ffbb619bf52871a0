"""The names in a config: steps read, paths below the prefix, and URLs."""

from __future__ import annotations

import re
from typing import Any

from marin_assets.step.graph import Node
from marin_assets.step.partitions.this_partition import at_key
from marin_assets.step.values import InputName, InputPartitions, MirroredValue, StepMarker, VersionedValue, map_leaves
from marin_resources.wire.config_json import texts_in

URL = re.compile(r"[a-z0-9]+://")


def external_names(node: Node) -> list[str]:
    """The paths in a config that are not outputs of steps: relative to the prefix, or absolute."""
    return list(dict.fromkeys(leaf.name for leaf in _inputs(node) if leaf.step is None and leaf.name))


def mirrored_names(node: Node) -> list[str]:
    """The paths in a config that are read through the mirror: relative to the prefix, or absolute."""
    names: list[str] = []

    def note(leaf: Any) -> Any:
        if isinstance(leaf, MirroredValue):
            map_leaves(leaf.value, note)
            names.extend([leaf.value] if isinstance(leaf.value, str) else [])
        if isinstance(leaf, InputName) and leaf.step is None and leaf.name:
            names.append(leaf.name)
        return leaf

    map_leaves([leaf for leaf in _leaves(node) if isinstance(leaf, MirroredValue)], note)
    return list(dict.fromkeys(names))


def urls_in(node: Node) -> list[str]:
    """The URLs in a config, which are read where they are."""
    urls: list[str] = []
    for leaf in _leaves(node):
        value = leaf.name if isinstance(leaf, InputName) and leaf.step is None else leaf
        value = value.value if isinstance(value, VersionedValue) else value
        urls += [text for text in texts_in(value) if URL.match(text)]
    return list(dict.fromkeys(urls))


def parts_read(node: Node) -> dict[str, tuple[str, ...]]:
    """Step name -> the files or folders that the node reads of its output; nothing of a step that it reads whole."""
    parts_by_step: dict[str, list[str]] = {}
    for leaf in _leaves(node):
        if isinstance(leaf, StepMarker):
            parts_by_step.setdefault(leaf.name, []).append("")
        if isinstance(leaf, InputName | InputPartitions) and leaf.step is not None:
            parts_by_step.setdefault(leaf.step.name, []).append(at_key(leaf.name, node.key) or "")
    return {name: tuple(parts) for name, parts in parts_by_step.items() if all(parts)}


def _inputs(node: Node) -> list[InputName]:
    return [leaf for leaf in _leaves(node) if isinstance(leaf, InputName)]


def _leaves(node: Node) -> list[Any]:
    leaves: list[Any] = []

    def note(leaf: Any) -> Any:
        leaves.append(leaf)
        return leaf

    map_leaves(node.step.config, note)
    return leaves
