"""Print the path of the data of one step, or of one of its partitions, and nothing else: cat $(marin path STEP)/file.

The path is printed also if the output is not complete, as what is half written can be looked at. Then the exit code is
1, and a sentence on stderr describes the state. Of a step with partitions it is the folder of all of them.
"""

from __future__ import annotations

import argparse
from collections import Counter

from marin_assets.cli.render.output_summary import describe
from marin_assets.cli.step_argument import add_places, add_step, chosen_node
from marin_assets.plan.partitions import partition_states
from marin_assets.run.options import FailedError, prefix_of
from marin_assets.run.output import print_line
from marin_assets.step.graph import Node
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.output.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    add_step(parser)
    add_places(parser)


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    node = chosen_node("path", options.step, options.partition, options.script)
    if node.step.partitions is not None and node.key is None:
        return _print_folder(node, store)
    observed = store.look([node.output])[node.output]
    recorded = observed.done or observed.damage
    print_line(observed.data_path if recorded else store.data_path(node.output))
    if observed.done:
        return 0
    state, why = state_of(observed), describe(node, observed)
    raise FailedError(f"{node.output.label} is not complete: {state}{f', {why}' if why else ''}")


def _print_folder(node: Node, store: Store) -> int:
    print_line(store.locate(node.output))
    counts = Counter(partition.state for partition in partition_states(node, store))
    if counts and set(counts) == {State.COMPLETE}:
        return 0
    counted = ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "none"
    raise FailedError(f"{node.name} is not complete, its partitions: {counted}")
