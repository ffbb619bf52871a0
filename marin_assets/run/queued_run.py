"""`marin run --launch`: the plan's runs, in the queue of the deployment."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence

from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.plan import Action, Planned
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import add_keys_of
from marin_assets.run.plan_options import Chosen
from marin_assets.step.graph import Node
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output


def launch(chosen: Chosen, planned: Sequence[Planned], store: Store, options: argparse.Namespace) -> int:
    """Put runs of the outputs that the plan computes into the queue. Returns the exit code.

    Raises OptionError for a script, whose steps are in no code location; SettingError for an instance without a queue.
    """
    if chosen.of_job is None:
        raise OptionError("marin run: got --launch and a script. The deployment has the steps of experiments alone.")
    remaining = {item.node.output for item in planned if item.action is not Action.REUSE or item.observed.collected}
    if not remaining:
        print_line("All is complete, so nothing is launched.")
        return 0
    ensure_dagster_home()
    keys_by_node = keys_of_nodes(chosen.runs, remaining)
    launched, served = (
        _launch_backfill(chosen, keys_by_node)
        if any(keys_by_node.values())
        else _launch_run(chosen, keys_by_node, options)
    )
    print_line(launched)
    if not served:
        print_stderr("No daemon is running for this instance, so it waits. `marin dev` starts one.")
    return 0


def keys_of_nodes(runs: Sequence[PartitionRun], remaining: Collection[Output]) -> dict[Node, list[str]]:
    """The nodes with remaining outputs, each with the keys of these in all its runs; without partitions no keys."""
    keys_by_node: dict[Node, list[str]] = {}
    for run in runs:
        for node in run.nodes:
            if (keys := _keys(node, run, remaining)) is not None:
                keys_by_node.setdefault(node, []).extend(keys)
    return keys_by_node


def _keys(node: Node, run: PartitionRun, remaining: Collection[Output]) -> list[str] | None:
    """The keys of the node's remaining outputs; no keys for a node without partitions. None if no output remains."""
    keys = [key for key in run.keys if node.at(key).output in remaining]
    return keys if keys or (not run.keys and node.output in remaining) else None


def _launch_run(
    chosen: Chosen, keys_by_node: Mapping[Node, list[str]], options: argparse.Namespace
) -> tuple[str, bool]:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.runs.launch import queue_run

    assert chosen.of_job is not None
    run_id, served = queue_run(
        chosen.name, chosen.graph, list(keys_by_node), chosen.of_job, max_concurrent=options.max_concurrent
    )
    return f"run: {run_id}", served


def _launch_backfill(chosen: Chosen, keys_by_node: Mapping[Node, list[str]]) -> tuple[str, bool]:
    """One backfill of all nodes: Dagster's daemon computes inputs first, also those without partitions."""
    from marin_assets.assets.runs.backfill import request_backfill  # late, as above
    from marin_assets.assets.runs.launch import launched_by

    add_keys_of(*chosen.runs)
    backfill, served = request_backfill(chosen.graph, keys_by_node, launched_by())
    return f"backfill: {backfill}", served
