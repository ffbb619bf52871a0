"""Show Dagster what the store has: a materialization for each complete output that its history does not know.

After a loss of Dagster's database, in a new deployment, or for outputs that were computed elsewhere. It adds the keys
of dynamic partitions too. It computes nothing, and changes nothing in the store; runs and ticks do not come back.

Exit code 0, also if there was nothing to do; 1 if a control file is damaged.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from marin_assets.cli.options import add_prefix, add_selection, prefix_of
from marin_assets.cli.output import print_line, print_stderr
from marin_assets.plan.code_location import select_nodes
from marin_assets.step.graph import Node
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.store import Store

if TYPE_CHECKING:
    import dagster as dg


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    parser.add_argument(
        "--dry-run", "--dry_run", action="store_true", help="print the outputs that Dagster does not know, add nothing"
    )


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    _, nodes = select_nodes(options.selection, options.experiment)
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync import find_unknown
    from marin_resources.orchestrator.databases import open_instance
    from marin_resources.settings import ensure_dagster_home

    ensure_dagster_home()
    with open_instance() as instance:
        unknown, damaged = find_unknown(instance, nodes, store)
        for sentence in damaged:
            print_stderr(sentence)
        if options.dry_run:
            for node in unknown:
                print_line(node.output.label)
            print_line(f"Dagster does not know {_outputs(len(unknown))} at {store.prefix}")
            return 1 if damaged else 0
        _add_keys(unknown)
        added = _report(instance, unknown, store)
    print_line(f"Dagster knows {_outputs(added)} more at {store.prefix}")
    return 1 if damaged else 0


def _add_keys(unknown: Sequence[Node]) -> None:
    from marin_assets.assets.dynamic_keys import add_keys  # late, as above

    by_step: dict[str, list[Node]] = {}
    for node in unknown:
        if node.key is not None:
            by_step.setdefault(node.name, []).append(node)
    for nodes in by_step.values():
        for name, new in add_keys(nodes[0].step.partitions, [str(node.key) for node in nodes]).items():
            print_stderr(f"new in the set {name!r}: {len(new)} key{'s' * (len(new) != 1)}")


def _report(instance: dg.DagsterInstance, unknown: Sequence[Node], store: Store) -> int:
    from tqdm import tqdm  # late, as above

    from marin_assets.assets.sync import report_unknown

    reported = report_unknown(instance, unknown, store)
    return sum(1 for _ in tqdm(reported, total=len(unknown), unit=" outputs", disable=None, leave=False))


def _outputs(count: int) -> str:
    return f"{count} output{'s' * (count != 1)}"
