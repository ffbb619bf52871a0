"""The one step, or partition of it, that a verb such as `marin path` is about."""

from __future__ import annotations

import argparse

from marin_assets.catalog.code_location import select_nodes
from marin_assets.cli.hint import about_step
from marin_assets.run.options import add_prefix, add_script
from marin_assets.step.graph import Node
from marin_assets.step.values import ConfigError

SHOWN_NAMES = 10


def add_step(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", metavar="STEP", help="its name, or a part of it that no other has")
    parser.add_argument("--partition", metavar="KEY", help="this partition of it")


def add_places(parser: argparse.ArgumentParser) -> None:
    add_prefix(parser)
    add_script(parser)


def chosen_node(verb: str, step: str, partition: str | None, script: str | None = None) -> Node:
    """The node of the step, or of its partition. Raises ConfigError if `step` selects several."""
    _, nodes = select_nodes([step], None, script)
    if len(nodes) > 1:
        more = f" and {len(nodes) - SHOWN_NAMES} more" if len(nodes) > SHOWN_NAMES else ""
        names = ", ".join(node.name for node in nodes[:SHOWN_NAMES])
        raise ConfigError(f"marin {verb} takes one step, and {step!r} selects {names}{more}. Give the name of one.")
    [node] = nodes
    return node if partition is None else node.at(partition)


def chosen_output_node(verb: str, options: argparse.Namespace) -> Node:
    """The node of the one output that a verb is about. Raises ConfigError for a step with partitions without a key."""
    node = chosen_node(verb, options.step, options.partition, options.script)
    if node.step.partitions is not None and node.key is None:
        raise ConfigError(
            f"Step {node.name!r} has partitions, expected --partition KEY. See them: "
            f"{about_step('partitions', node, script=options.script, prefix=options.prefix)}"
        )
    return node
