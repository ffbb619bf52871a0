"""Materialize selected steps of the experiments of this code location. Complete outputs are reused.

`A` selects the step A alone, `+A` with everything that it needs. A selection that matches no step is an error; all
steps are selected by '*'.

Exit code 0: all selected outputs are complete. 1: a step or a check failed. 2: wrong arguments. 130: Ctrl-C.
"""

from __future__ import annotations

import argparse

from marin_assets.catalog.code_location import select_nodes
from marin_assets.run.entry_point import add_run_options, plan_or_materialize
from marin_assets.run.options import add_prefix, add_selection, prefix_of, require_words
from marin_assets.step.graph import build_graph
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import refuse_store_without_conditions
from marin_resources.types.location_job import ALL_ASSETS, LocationJob


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_run_options(parser)


def run(options: argparse.Namespace) -> int:
    require_words("materialize", options.selection, options.experiment)
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    _, selected = select_nodes(options.selection, options.experiment)
    graph = build_graph([node.step for node in selected])
    nodes = [graph[node.step] for node in selected]
    of_job = LocationJob(name=options.experiment or ALL_ASSETS, whole=not options.selection)
    return plan_or_materialize(options.experiment or "selected", graph, nodes, store, options, of_job=of_job)
