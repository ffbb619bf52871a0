"""Which steps of the code location a command is about.

tokenized            every step whose name the pattern finds (a regular expression); a whole name means that step only
+evaluation/scores   and all that it reads
raw/web+             and all that reads it
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence

from marin_assets.plan.experiments_folder import Experiments, load_experiments
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.values import ConfigError

SHOWN_NAMES = 20


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "selection", nargs="*", help="a step's name or part of it; +name with what it reads, name+ with what reads it"
    )
    parser.add_argument("--experiment", metavar="NAME", help="only steps of this experiment")


def select_nodes(patterns: Sequence[str], experiment: str | None) -> tuple[Graph, list[Node]]:
    """All steps of all experiments, and those of them that are selected; all of them without a pattern.

    Raises ConfigError for an experiment that is not there, and for a pattern that finds nothing.
    """
    loaded = load_experiments()
    graph = build_graph([step for steps in loaded.steps.values() for step in steps])
    among = list(graph) if experiment is None else _of_experiment(loaded, graph, experiment)
    if not patterns:
        return graph, among
    wanted = {node for pattern in patterns for node in find_nodes(graph, among, pattern)}
    return graph, [node for node in graph if node in wanted]


def _of_experiment(loaded: Experiments, graph: Graph, experiment: str) -> list[Node]:
    if experiment in loaded.left_out:
        raise ConfigError(loaded.left_out[experiment])
    if experiment not in loaded.steps:
        raise ConfigError(f"There is no experiment {experiment!r}, expected one of {_listed(loaded.steps)}.")
    return [graph[node.step] for node in build_graph(loaded.steps[experiment])]


def find_nodes(graph: Graph, among: Sequence[Node], pattern: str) -> set[Node]:
    """The nodes that one pattern means."""
    with_inputs, with_readers = pattern.startswith("+"), pattern.endswith("+")
    name = pattern.strip("+")
    exact = [node for node in among if node.name == name]
    found = set(exact or [node for node in among if _finds(name, node.name)])
    if not found or not name:
        names = _listed(sorted(node.name for node in among))
        raise ConfigError(f"The selection {pattern!r} finds none of the steps {names}. Give part of a name.")
    above = _inputs_of(graph, found) if with_inputs else set()
    below = {reader for node in found for reader in graph.downstream(node)} if with_readers else set()
    return found | above | below


def _inputs_of(graph: Graph, nodes: set[Node]) -> set[Node]:
    reached = set(nodes)
    for node in reversed(graph.nodes):
        if node in reached:
            reached.update((*node.dependencies, *node.pseudo_dependencies))
    return reached


def _finds(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise ConfigError(f"The selection {pattern!r} is not a pattern ({error}). Give part of a name.") from None


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - SHOWN_NAMES} more" if len(known) > SHOWN_NAMES else ""
    return ", ".join(known[:SHOWN_NAMES]) + more
