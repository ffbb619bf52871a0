"""Materialize selected steps of the experiments of this code location. Complete outputs are reused.

`A` selects the step A alone, `+A` with everything that it needs. A selection that matches no step is an error; all
steps are selected by '*'.

Exit code 0: all selected outputs are complete. 1: a step or a check failed. 2: wrong arguments. 130: Ctrl-C.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.entry_point import add_run_options, materialize_nodes, plan_with_drift, print_plan
from marin_assets.cli.options import OptionError, add_prefix, add_selection, prefix_of
from marin_assets.plan.code_location import select_nodes
from marin_assets.step.graph import build_graph
from marin_assets.step.placement import refuse_overlaps
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.output.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_run_options(parser)


def run(options: argparse.Namespace) -> int:
    if not (options.selection or options.experiment):
        raise OptionError(
            "marin materialize: got no selection, expected at least one. Pass names of steps, --experiment NAME, or "
            "'*' for all steps."
        )
    store = Store(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    _, selected = select_nodes(options.selection, options.experiment)
    graph = build_graph([node.step for node in selected])
    refuse_overlaps((store.locate(node.output), node.name) for node in graph)
    nodes = [graph[node.step] for node in selected]
    if options.dry_run:
        require_reachable(store.prefix)
        print_plan(plan_with_drift(graph, store, nodes))
        return 0
    return materialize_nodes(options.experiment or "selected", graph, nodes, store, options)
