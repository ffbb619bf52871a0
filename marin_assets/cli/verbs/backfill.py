"""Request a backfill: Dagster's daemon materializes partitions of one step of the code location, in runs of its own.

It takes one step, and without an option all of its partitions that are not complete. `--dry-run` prints which, and
requests nothing.

Exit code 0: the backfill is requested, or nothing is to be made. 2: wrong arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from marin_assets.catalog.code_location import select_nodes
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.partitions import partition_states
from marin_assets.run.options import OptionError, add_prefix, add_selection, prefix_of, require_words
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import (
    add_keys_of,
    add_partition_options,
    chosen_keys,
    known_keys_of,
    lines_of_new_keys,
)
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.state_summary import UNFINISHED, State
from marin_resources.storage.output.store import Store

SHOWN_KEYS = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_partition_options(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--missing", action="store_true", help="partitions that are not complete: the default")
    which.add_argument("--failed", action="store_true", help="partitions whose last attempt failed")
    which.add_argument(
        "--unsynced",
        "--outdated",  # its former name
        dest="unsynced",
        action="store_true",
        help="partitions that Dagster has at another version of the step",
    )
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="print the partitions, request nothing")


def run(options: argparse.Namespace) -> int:
    require_words("backfill", options.selection, options.experiment)
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    _, nodes = select_nodes(options.selection, options.experiment)
    chosen = [node for node in nodes if node.step.partitions is not None]
    if len(chosen) != 1:
        names = ", ".join(repr(node.name) for node in chosen) or "none"
        raise ConfigError(f"marin backfill takes one step with partitions, and got {names}. Give the name of one.")
    [node] = chosen
    keys = _keys(node, store, options)
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    counted = f"{len(keys)} partition{'s' * (len(keys) != 1)}"
    print_line(f"{counted} of {node.name}: {', '.join(keys[:SHOWN_KEYS])}{more}".rstrip(": "))
    requested = PartitionRun(nodes=(node,), keys=tuple(keys))
    if options.dry_run or not keys:
        for line in lines_of_new_keys([requested]):
            print_line(line)
        return 0
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.runs.backfill import request_backfill

    graph = build_graph([selected.step for selected in nodes])
    add_keys_of(requested)
    backfill, served = request_backfill(graph, {graph[node.step]: keys})
    print_line(f"backfill: {backfill}")
    if not served:
        print_stderr("No daemon is running for this instance, so it waits. `marin dev` starts one.")
    return 0


def _keys(node: Node, store: Store, options: argparse.Namespace) -> Sequence[str]:
    if options.partition or options.partition_range:
        if options.missing or options.failed or options.unsynced:
            raise OptionError(
                "marin backfill: got keys and a state, expected one of them. See 'marin backfill --help'."
            )
        return chosen_keys(node, options.partition, options.partition_range, known_keys_of(node))
    keys = known_keys_of(node)
    states = {partition.key: partition.state for partition in partition_states(node, store, keys)}
    if options.failed:
        return [key for key, state in states.items() if state in (State.FAILED, State.DEAD)]
    unfinished = [key for key in keys if states[key] in UNFINISHED]
    if not options.unsynced:
        return unfinished
    from marin_assets.assets.runs.backfill import materialized_at_another_version  # late, as above

    other = materialized_at_another_version(node, frozenset(unfinished))
    return [key for key in unfinished if key in other]
