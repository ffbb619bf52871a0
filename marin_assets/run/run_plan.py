"""Carry out a plan in this process: one Dagster run for each set of partitions, of the outputs that are not reused.

Reused outputs are not part of a run. Their materializations are reported to Dagster if it lacks them.

Of a large plan the run checks the outputs that it reads and those that were requested, and none above these.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.render.text import ONE_BY_ONE
from marin_assets.run.force import report_drift
from marin_assets.run.output import print_stderr
from marin_assets.run.partition_options import add_keys_of
from marin_assets.step.graph import Graph, Node
from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import SettingError, ensure_dagster_home
from marin_resources.drift.drift import describe
from marin_resources.host.imports import collection_paused
from marin_resources.ray_tpu.cluster.settings_from_env import is_on_cluster
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.filesystems.rights import why_unwritable
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_listing
from marin_resources.storage.paths import absolute, is_local, join
from marin_resources.types.output import Observed, Output
from marin_resources.types.versioned_json import ControlFileError

if TYPE_CHECKING:
    from marin_resources.types.location_job import LocationJob


THREADS = 32


@dataclass(frozen=True, kw_only=True)
class Job:
    """The steps to carry out, and how Dagster shows them."""

    name: str
    graph: Graph
    store: Store
    runs: Sequence[PartitionRun]
    description: str | None = None
    of_job: LocationJob | None = None
    """The job of the code location under which Dagster lists the run."""


def carry_out(job: Job, planned: Sequence[Planned], options: argparse.Namespace) -> int:
    """Compute the outputs that are not reused. Returns 1 if a step or a check failed, 130 after Ctrl-C, else 0."""
    home = ensure_dagster_home()
    looked = look_at_reused(planned, job.store)
    nodes = [item.node for item in planned]
    remaining = {item.node.output for item in planned if item.action is not Action.REUSE or item.observed.collected}
    remaining |= needs_recheck(nodes, looked, job.store)
    runs = [reduced for run in job.runs if (reduced := _reduced(run, remaining)) is not None]
    inside = {node.output for run in runs for node in run.outputs()}
    outside = [item for item in planned if item.node.output not in inside]
    _tell_dagster(outside, job, looked)
    for line in lines_of_reused(outside):
        print_stderr(line)
    if not runs:
        print_stderr(f"0 computed, {len(outside)} reused, 0 failed")
        return 0
    # late, for its weight. Ray takes 0.9 s to start, and Dagster 2 s to import: both at once
    from marin_resources.ray_tpu.local.local_ray import ray_started_ahead

    idle = {item.node.output: item.observed for item in planned if item.observed.idle}
    with contextlib.nullcontext() if is_on_cluster(None) else ray_started_ahead():
        code = _run_all(job, runs, len(outside), options, home, idle)
    _tell_dagster(report_drift(planned, job.graph, job.store), job, {})
    return code


def _run_all(
    job: Job,
    runs: Sequence[PartitionRun],
    reused: int,
    options: argparse.Namespace,
    home: str,
    planned: Mapping[Output, Observed],
) -> int:
    with collection_paused():
        from marin_assets.assets.runs.run import run_graph  # late, for its weight: Dagster takes a second

    add_keys_of(*runs)
    for run in runs:
        ended = run_graph(
            job.name,
            job.graph,
            run.nodes,
            keys=run.keys,
            of_job=job.of_job,
            max_concurrent=options.max_concurrent,
            wait_for_others=not options.fail_if_held,
            planned=planned,
        )
        print_stderr(f"run: {ended.run_id} in {home} ({make_or('dev', 'marin dev')} shows it)")
        print_stderr(f"{ended.computed} computed, {ended.reused + reused} reused, {len(ended.failures)} failed")
        reused = 0
        for sentence in (*ended.failures, *ended.failed_checks):
            print_stderr(sentence)
        if ended.stopped:
            return 130
        if ended.failures or ended.failed_checks:
            return 1
    return 0


def _reduced(run: PartitionRun, remaining: Collection[Output]) -> PartitionRun | None:
    """The remaining part of a run. A run of partitions keeps all its keys: they are a range to Dagster."""
    if run.keys:
        nodes = tuple(node for node in run.nodes if any(node.at(key).output in remaining for key in run.keys))
    else:
        nodes = tuple(node for node in run.nodes if node.output in remaining)
    return replace(run, nodes=nodes) if nodes else None


def lines_of_reused(reused: Sequence[Planned]) -> list[str]:
    """A line for each reused step; of many only for those that drift, and of many of these for the first."""
    shown = reused if len(reused) <= ONE_BY_ONE else [item for item in reused if describe(item.drift)]
    more = len(shown) - ONE_BY_ONE
    lines = [
        "; ".join(filter(None, (f"{item.label}: reused {item.observed.data_path}", describe(item.drift))))
        for item in shown[:ONE_BY_ONE]
    ]
    return [*lines, f"and {more:,} more drift: see `marin plan`"] if more > 0 else lines


def _tell_dagster(reused: Sequence[Planned], job: Job, looked: dict[Output, Observed]) -> None:
    """Report the reused outputs that Dagster does not know, or whose drift it does not show."""
    if not reused:
        return
    # late, as above
    from marin_assets.assets.sync.sync import report_reused
    from marin_resources.dagster_fixes.databases import open_instance

    with open_instance() as instance:
        report_reused(instance, reused, job.graph, job.store, looked)


def write_record(job: Job) -> str:
    """Write the record of the experiment, and return a line about it: its path, or why it is not kept in a prefix that
    this user may only read. Raises SettingError for a prefix that cannot be created."""
    from marin_assets.assets.runs.experiment_record import RECORDS, write_experiment  # late, as it queries git

    prefix = job.store.prefix
    try:
        require_reachable(prefix)
        path = write_experiment(job.name, job.graph, job.store, job.description)
    except UnavailableError as error:
        raise SettingError(f"The prefix {prefix!r} cannot be written: {error}") from error
    except OSError as error:
        if is_local(prefix) and os.path.isdir(absolute(prefix)) and (why := why_unwritable(join(prefix, RECORDS))):
            return (
                f"experiment: its record is not kept, so marin gc does not know that these outputs are needed, as {why}"
            )
        raise SettingError(
            f"The prefix {prefix!r} cannot be written ({error}). Set MARIN_PREFIX to a folder of yours."
        ) from error
    return f"experiment: {path}"


def look_at_reused(planned: Sequence[Planned], store: Store) -> dict[Output, Observed]:
    """The reused outputs as a look at their files finds them, to the extent that a run looks."""
    reused = [item for item in planned if item.action is Action.REUSE]
    if any(item.observed.listed for item in reused):
        near = _near(planned)
        reused = [item for item in reused if item.node.output in near]
    looked = store.look(item.node.output for item in reused if item.observed.listed)
    return {item.node.output: looked.get(item.node.output, item.observed) for item in reused}


def needs_recheck(nodes: Sequence[Node], looked: dict[Output, Observed], store: Store) -> set[Output]:
    """The outputs among `looked` that are not complete, lack files, or miss an expectation. A run of Dagster's takes
    them: there each failing check has its event, and incomplete outputs are computed."""
    of_output = [(node, looked[node.output]) for node in nodes if node.output in looked]
    if is_local(store.prefix):
        right = [_is_right(node, seen) for node, seen in of_output]
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            right = list(pool.map(lambda pair: _is_right(*pair), of_output))
    return {node.output for (node, _), holds in zip(of_output, right, strict=True) if not holds}


def _near(planned: Sequence[Planned]) -> Collection[Output]:
    """The outputs that the computed steps read, and those that no other step of the plan reads."""
    read_by_runs = {
        output for item in planned if item.action is not Action.REUSE for output in item.node.inputs.values()
    }
    read = {output for item in planned for output in item.node.inputs.values()}
    return read_by_runs | {item.node.output for item in planned if item.node.output not in read}


def _is_right(node: Node, seen: Observed) -> bool:
    if not seen.done:
        return False
    try:
        return verify_listing(seen.path, seen.record).ok and all(
            expectation.warn or expectation.holds(seen.result) for expectation in node.step.expectations
        )
    except ControlFileError:
        return False
