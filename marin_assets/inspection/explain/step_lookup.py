"""The step that a person names: one of the code, or one that only records know, as it was renamed or deleted since."""

from __future__ import annotations

from marin_assets.catalog.code_location import select_nodes
from marin_assets.inspection.explain.materializations import versions_in_place
from marin_assets.step.graph import Graph, Node
from marin_assets.step.values import ConfigError
from marin_resources.storage.output.notes.history import past_versions

SHOWN = 5


def find_step(
    text: str, prefix: str, experiment: str | None, script: str | None
) -> tuple[str, Graph | None, Node | None]:
    """The name of the step, and its graph and node if the code has it. `text` is a name, or selects one step.

    Raises ConfigError for a text that selects several steps, or none and has no records either.
    """
    try:
        graph, nodes = select_nodes([text], experiment, script)
    except ConfigError:
        if not has_records(prefix, text):
            raise
        return text, None, None
    exact = [node for node in nodes if node.name == text]
    if not exact and has_records(prefix, text):
        return text, None, None
    if len(nodes) > 1 and not exact:
        names = ", ".join(repr(node.name) for node in nodes[:SHOWN])
        more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
        raise ConfigError(f"The selection {text!r} finds {names}{more}, expected one step. Give its whole name.")
    [node] = exact or nodes
    return node.name, graph, node


def has_records(prefix: str, name: str) -> bool:
    """Whether outputs of a step of this name are known below the prefix, in place or removed."""
    try:
        return bool(versions_in_place(prefix, name) or past_versions(prefix, name))
    except (OSError, ValueError):  # a selection that is no path
        return False
