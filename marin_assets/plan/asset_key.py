"""A step's name to its asset key and group."""

from __future__ import annotations

import re

from marin_assets.step.graph import Node


def key_of(node: Node) -> tuple[str, ...]:
    """The segments of the asset's key: the step's own, or its name's."""
    return tuple(node.step.key or node.name.split("/"))


def group_of(node: Node) -> str:
    return re.sub(r"\W", "_", node.name.split("/")[0])
