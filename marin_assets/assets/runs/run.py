"""One Dagster run of a graph: in this process, in the instance at DAGSTER_HOME."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from marin_assets.assets.assemble import definitions_of, jobs_of
from marin_assets.assets.factory import asset_key
from marin_assets.step.graph import Graph, Node
from marin_resources.dagster_fixes.console import failure_sentence, run_failure
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.dagster_fixes.job_runs import execute_stored_run, location_job_origin, store_run
from marin_resources.dagster_fixes.run_launcher import terminal_tag
from marin_resources.orchestrator.run_state import planned_states
from marin_resources.types.location_job import ALL_ASSETS, LocationJob
from marin_resources.types.output import Observed, Output


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run."""

    run_id: str
    computed: int
    reused: int
    failures: tuple[str, ...]
    """One sentence for each step that failed."""
    failed_checks: tuple[str, ...]
    stopped: bool
    """Whether the run was stopped, by Ctrl-C, a signal or Terminate."""


def run_graph(
    name: str,
    graph: Graph,
    nodes: Sequence[Node],
    *,
    keys: Sequence[str] = (),
    of_job: LocationJob | None = None,
    max_concurrent: int | None = None,
    wait_for_others: bool = True,
    planned: Mapping[Output, Observed] | None = None,
) -> RunResult:
    """Materialize `nodes` in one run called `name`, or in a run of a job of the code location.

    `keys`: the partitions to materialize, a range in the order of the nodes' one set. `planned`: the states of outputs
    that the plan has read.
    """
    with open_instance() as instance, planned_states(planned or {}):
        job, run = create_run(
            instance,
            name,
            graph,
            nodes,
            keys=keys,
            of_job=of_job,
            max_concurrent=max_concurrent,
            wait_for_others=wait_for_others,
            tags_of=terminal_tag,
        )
        result = execute_stored_run(instance, job, run)
        return _run_result(instance, run.run_id, result)


def create_run(
    instance: dg.DagsterInstance,
    name: str,
    graph: Graph,
    nodes: Sequence[Node],
    *,
    keys: Sequence[str] = (),
    of_job: LocationJob | None = None,
    max_concurrent: int | None = None,
    wait_for_others: bool = True,
    tags_of: Callable[[str], Mapping[str, str]] = lambda run_id: {},
) -> tuple[dg.JobDefinition, dg.DagsterRun]:
    """Store a run of `nodes` that has not begun, and return it with its job. `tags_of` returns its tags for its id."""
    job, selected = _job_of(name, graph, nodes, of_job)
    execution = {"execution": {"config": {"max_concurrent": max_concurrent}}} if max_concurrent else {}
    store_config = {} if wait_for_others else {"resources": {"store": {"config": {"wait_for_others": False}}}}
    config = {**execution, **store_config, "loggers": {"console": {"config": {}}}}
    run_id = str(uuid.uuid4())
    tags = {**tags_of(run_id), **_partition_tags(keys)}
    origin = location_job_origin(job.name) if of_job is not None else None
    run = store_run(instance, job, run_id=run_id, tags=tags, config=config, selected=selected, origin=origin)
    return job, run


def _partition_tags(keys: Sequence[str]) -> dict[str, str]:
    """Dagster's tags of a run of one partition, or of a range of them."""
    if not keys:
        return {}
    if len(keys) == 1:
        return {"dagster/partition": keys[0]}
    return {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}


def _job_of(
    name: str, graph: Graph, nodes: Sequence[Node], of_job: LocationJob | None
) -> tuple[dg.JobDefinition, frozenset[dg.AssetKey] | None]:
    """The job to run, and the assets that the run selects; None for all of the job."""
    if of_job is None:
        return definitions_of(graph, {name: nodes}).resolve_job_def(name), None
    jobs = {} if of_job.name == ALL_ASSETS else jobs_of(of_job.name, graph)
    # of an experiment whose steps have several sets of partitions, the job with these
    name = next((name for name, members in jobs.items() if set(nodes) <= set(members)), ALL_ASSETS)
    job = definitions_of(graph, jobs).resolve_job_def(name)
    if of_job.whole and len(nodes) == len(jobs.get(name, ())):
        return job, None
    selected = frozenset(asset_key(node) for node in nodes)
    return job.get_subset(asset_selection=selected), selected


def _run_result(instance: dg.DagsterInstance, run_id: str, result: Any) -> RunResult:
    run = instance.get_run_by_id(run_id)
    events = [event.message for event in result.all_events if _is_interruption(event)]
    failures = tuple(failure_sentence(event) for event in result.all_events if event.is_step_failure)
    materialized = [event.materialization for event in result.get_asset_materialization_events()]
    if failures:  # the complete partitions of a step that failed are in the run's log alone
        logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        materialized = [
            materialization for entry in logged if (materialization := entry.asset_materialization) is not None
        ]
    reused = sum(materialization.metadata["reused"].value is True for materialization in materialized)
    if events:
        failures = (events[0],)
    elif not failures and run is not None and run.status is not dg.DagsterRunStatus.SUCCESS:
        failures = tuple(run_failure(event) for event in result.all_events if event.is_job_failure)
    failing = (check for check in result.get_asset_check_evaluations() if not check.passed)
    checks = [check for check in failing if check.severity is dg.AssetCheckSeverity.ERROR]
    return RunResult(
        run_id=run_id,
        computed=len(materialized) - reused,
        reused=reused,
        failures=failures,
        failed_checks=tuple(
            f"Check {check.check_name!r} of {check.asset_key.to_user_string()!r} does not hold: "
            f"{_text(check.metadata.get('expected'))}, and it is {_text(check.metadata.get('value'))}"
            for check in checks
        ),
        stopped=bool(events),
    )


def _is_interruption(event: dg.DagsterEvent) -> bool:
    return event.is_engine_event and "steps_interrupted" in event.engine_event_data.metadata


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))
