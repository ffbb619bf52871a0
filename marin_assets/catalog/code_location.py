"""The steps of the code location: all experiments in one graph, and a selection of it."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.catalog.experiments_folder import Experiments, load_experiments
from marin_assets.catalog.script import graph_of_script
from marin_assets.catalog.selection import select
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.values import ConfigError
from marin_resources.types.near_names import expected_one_of


def select_nodes(
    selections: Sequence[str], experiment: str | None, script: str | None = None, *, script_stays_main: bool = False
) -> tuple[Graph, list[Node]]:
    """The graph of all experiments, or of the script at this path, and its selected nodes.

    Without a selection, all nodes, or all of `experiment`. `script_stays_main`: see `graph_of_script`. Raises
    ConfigError for an unknown experiment, a script that cannot be read, and for a selection that cannot be parsed or
    selects nothing.
    """
    if script is not None:
        if experiment is not None:
            raise ConfigError(f"Got the script {script!r} and the experiment {experiment!r}, expected one of them.")
        graph = graph_of_script(script, stays_main=script_stays_main)
        return graph, select(graph, selections, list(graph))
    loaded = load_experiments(not_logged=experiment)
    graph = build_graph([step for steps in loaded.steps.values() for step in steps])
    among = list(graph) if experiment is None else _nodes_of(loaded, graph, experiment)
    return graph, select(graph, selections, among)


def _nodes_of(loaded: Experiments, graph: Graph, experiment: str) -> list[Node]:
    if experiment in loaded.left_out:
        raise ConfigError(loaded.left_out[experiment])
    if experiment not in loaded.steps:
        raise ConfigError(f"There is no experiment {experiment!r}, {expected_one_of(experiment, sorted(loaded.steps))}")
    return [graph[node.step] for node in build_graph(loaded.steps[experiment])]
