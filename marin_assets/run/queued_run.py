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
    """Put what the plan computes into the queue. Returns the exit code.

    Raises OptionError for a script, whose steps are in no code location; SettingError for an instance without a queue.
    """
    if chosen.of_job is None:
        raise OptionError("marin run: got --launch and a script. The deployment has the steps of experiments alone.")
    left = {item.node.output for item in planned if item.action is not Action.REUSE or item.observed.collected}
    if not left:
        print_line("All is complete, so nothing is launched.")
        return 0
    ensure_dagster_home()
    wanted = keys_of_nodes(chosen.runs, left)
    what, served = _launch_backfill(chosen, wanted) if any(wanted.values()) else _launch_run(chosen, wanted, options)
    print_line(what)
    if not served:
        print_stderr("No daemon is running for this instance, so it waits. `marin dev` starts one.")
    return 0


def keys_of_nodes(runs: Sequence[PartitionRun], left: Collection[Output]) -> dict[Node, list[str]]:
    """The nodes of which something is left to make, with its keys, of all runs of a node; none without partitions."""
    wanted: dict[Node, list[str]] = {}
    for run in runs:
        for node in run.nodes:
            if (keys := _keys(node, run, left)) is not None:
                wanted.setdefault(node, []).extend(keys)
    return wanted


def _keys(node: Node, run: PartitionRun, left: Collection[Output]) -> list[str] | None:
    """The keys of the node that are left to make; none for a node without partitions. None: nothing is left."""
    keys = [key for key in run.keys if node.at(key).output in left]
    return keys if keys or (not run.keys and node.output in left) else None


def _launch_run(chosen: Chosen, wanted: Mapping[Node, list[str]], options: argparse.Namespace) -> tuple[str, bool]:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.runs.launch import queue_run

    assert chosen.of_job is not None
    run_id, served = queue_run(
        chosen.name, chosen.graph, list(wanted), chosen.of_job, max_concurrent=options.max_concurrent
    )
    return f"run: {run_id}", served


def _launch_backfill(chosen: Chosen, wanted: Mapping[Node, list[str]]) -> tuple[str, bool]:
    """One backfill of all of it: Dagster's daemon makes inputs first, also those without partitions."""
    from marin_assets.assets.runs.backfill import request_backfill  # late, as above
    from marin_assets.assets.runs.launch import launched_by

    add_keys_of(*chosen.runs)
    backfill, served = request_backfill(chosen.graph, wanted, launched_by())
    return f"backfill: {backfill}", served
