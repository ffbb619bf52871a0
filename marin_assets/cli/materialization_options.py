"""Options that name one materialization of a step: which step, which partition, which of all that are known."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from marin_assets.catalog.code_location import select_nodes
from marin_assets.inspection.explain.materializations import (
    Materialization,
    NoMaterializationError,
    materializations,
    newest_at,
    versions_in_place,
)
from marin_assets.run.options import FailedError, add_prefix, add_script
from marin_assets.run.output import print_stderr
from marin_assets.step.graph import Graph, Node
from marin_assets.step.values import ConfigError
from marin_resources.storage.output.notes.history import past_versions
from marin_resources.storage.output.store import Store

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Named:
    """A step that was named, and all materializations of it that are known."""

    label: str
    """Name of the step, with the key of a partition."""
    graph: Graph | None
    node: Node | None
    """None: the code has no such step any more."""
    known: list[Materialization]
    """The newest first; at least one."""

    def chosen(self, at: str | None) -> Materialization:
        """The one that `--at` names; by default the newest complete one of the code's version, else the newest.

        Raises ConfigError.
        """
        if at is not None:
            try:
                return newest_at(self.known, at)
            except NoMaterializationError as error:
                raise ConfigError(str(error)) from None
        complete = [materialization for materialization in self.known if materialization.complete] or self.known
        current = [
            materialization
            for materialization in complete
            if self.node is not None and materialization.version == self.node.version.hash
        ]
        return (current or complete)[0]


def add_materialization(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", help="the step: its name, or a selection of one step")
    parser.add_argument("--partition", metavar="KEY", help="this partition of it")
    parser.add_argument(
        "--at", metavar="VERSION|RUN|DATE", help="the newest one of this version, of this Dagster run, or until then"
    )
    parser.add_argument("--experiment", metavar="NAME", help="only steps of this experiment")
    add_prefix(parser)
    add_script(parser)


def named(options: argparse.Namespace, store: Store) -> Named:
    """The step that the options name. Raises ConfigError if no materialization is known, FailedError if all are
    damaged, and UnavailableError."""
    name, graph, node = find_step(options.step, store.prefix, options.experiment, options.script)
    key = options.partition
    if node is not None and node.step.partitions is not None and key is None:
        raise ConfigError(f"Step {name!r} has partitions. Say which one with --partition KEY.")
    if node is not None and key is not None:
        node = node.at(key)
    elsewhere = [store.locate(node.output)] if node is not None and node.output.override is not None else []
    damaged: list[str] = []
    history = materializations(store.prefix, name, key, elsewhere, damaged.append)
    if damaged and not history:
        raise FailedError(damaged[0])
    for sentence in damaged:
        print_stderr(sentence)
    if not history:
        of_key = f" at the partition {key!r}" if key is not None else ""
        raise ConfigError(
            f"No record of the step {name!r}{of_key} is below the prefix {store.prefix!r}. Give another --prefix, or "
            "compute it first; if it has partitions, give one with --partition."
        )
    return Named(label=name if key is None else f"{name}[{key}]", graph=graph, node=node, known=history)


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
