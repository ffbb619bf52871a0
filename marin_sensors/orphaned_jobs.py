"""Report jobs on the Ray cluster that no run waits for, and runs whose job does not exist.

A run that dies leaves its jobs running, as the next run attaches to them. Without a next run, they hold the cluster's
machines. This sensor reports them on its own page, in the tick's log, and once in the log of the run. It starts nothing
and stops nothing. If the cluster cannot be reached, the tick is skipped with the reason.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import dagster as dg
from dagster import RunRecord
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from marin_resources.orchestrator.run_jobs import jobs_of
from marin_resources.orchestrator.run_launcher import is_over
from marin_resources.settings import SettingError
from marin_sensors.orphans import Finding, Findings, Run, compare, is_a_step

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi

INTERVAL_S = 60
RECHECK_S = 10.0
"""A run whose job is gone, or whose cluster was unreachable, retries after 5 s at most."""


def default_status() -> dg.DefaultSensorStatus:
    """Running if a cluster is configured, unless a user switches the sensor off."""
    has_cluster = bool(os.environ.get("MARIN_CLUSTER"))
    return dg.DefaultSensorStatus.RUNNING if has_cluster else dg.DefaultSensorStatus.STOPPED


@dg.sensor(
    minimum_interval_seconds=INTERVAL_S,
    default_status=default_status(),
    description="Reports jobs on the Ray cluster that no run waits for, and runs whose job does not exist.",
)
def orphaned_jobs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    from marin_resources.ray_tpu.cluster.api.jobs_api import ApiError, RefusedError, UnreachableError, connect
    from marin_resources.ray_tpu.cluster.local.state import LocalClusterError
    from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env

    try:
        settings = settings_from_env(None)
        if settings is None:
            return dg.SkipReason("No Ray cluster is configured. Set MARIN_CLUSTER to the address of its dashboard.")
        findings = asyncio.run(_find_twice(connect(settings), context.instance))
    except (SettingError, LocalClusterError, UnreachableError, RefusedError, ApiError) as error:
        return dg.SkipReason(str(error))
    _report(context, findings.all)
    return dg.SkipReason(findings.summary())


async def _find_twice(api: JobsApi, instance: dg.DagsterInstance) -> Findings:
    """Return the findings that hold twice, 10 s apart: jobs and runs change between the two queries, and a run may be
    about to submit its job again."""
    async with api:
        findings = await _find(api, instance)
        if not findings.all:
            return findings
        await asyncio.sleep(RECHECK_S)
        return (await _find(api, instance)).also_in(findings)


async def _find(api: JobsApi, instance: dg.DagsterInstance) -> Findings:
    jobs = await api.list()
    runs = _runs(instance, {job.metadata["marin/run_id"] for job in jobs if is_a_step(job)})
    return compare(jobs, runs, time.time())


def _runs(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> dict[str, Run]:
    """The runs of these ids in this deployment, and all runs in progress, by run id."""
    records = {
        record.dagster_run.run_id: record
        for record in instance.get_run_records(dg.RunsFilter(statuses=IN_PROGRESS_RUN_STATUSES))
    }
    rest = sorted(set(run_ids) - records.keys())
    if rest:
        found = instance.get_run_records(dg.RunsFilter(run_ids=rest))
        records.update({record.dagster_run.run_id: record for record in found})
    return {run_id: _run(record) for run_id, record in records.items()}


def _run(record: RunRecord) -> Run:
    run = record.dagster_run
    ended_at_s = record.end_time or record.update_timestamp.timestamp()
    return Run(
        run_id=run.run_id,
        ended_at_s=ended_at_s if run.is_finished else None,
        is_gone=is_over(run) and not run.is_finished,
        jobs=jobs_of(run),
    )


def _report(context: dg.SensorEvaluationContext, findings: Iterable[Finding]) -> None:
    """Log each finding in the tick, and once in its run. The cursor holds the keys of reported ones, one a line."""
    reported = set((context.cursor or "").splitlines())
    findings = list(findings)
    for finding in findings:
        context.log.warning(finding.sentence)
        run = context.instance.get_run_by_id(finding.run_id)
        if finding.key not in reported and run is not None:
            context.instance.report_engine_event(finding.sentence, dagster_run=run)
    context.update_cursor("\n".join(sorted({finding.key for finding in findings})))
