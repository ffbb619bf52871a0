"""Tells of jobs on the Ray cluster that no run waits for, and of runs whose job is gone.

An orchestrator that dies leaves its jobs running, which is meant so: the next run attaches to them. If none comes,
they hold the cluster's machines, and this sensor says so: on its own page, in the tick's log, and once in the log of
the run. It starts nothing and stops nothing. A cluster that cannot be asked is a tick that says why.
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
LOOK_AGAIN_S = 10.0
"""A run that finds its job gone, or could not reach the cluster, tries again after 5 s at most."""


def default_status() -> dg.DefaultSensorStatus:
    """On where there is a cluster, unless somebody switches it off."""
    has_cluster = bool(os.environ.get("MARIN_CLUSTER"))
    return dg.DefaultSensorStatus.RUNNING if has_cluster else dg.DefaultSensorStatus.STOPPED


@dg.sensor(
    minimum_interval_seconds=INTERVAL_S,
    default_status=default_status(),
    description="Tells of jobs on the Ray cluster that no run waits for, and of runs whose job is gone.",
)
def orphaned_jobs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    from marin_resources.ray_tpu.cluster.api.jobs_api import ApiError, RefusedError, UnreachableError, connect
    from marin_resources.ray_tpu.cluster.configured import settings_of
    from marin_resources.ray_tpu.cluster.local.state import LocalClusterError

    try:
        settings = settings_of(None)
        if settings is None:
            return dg.SkipReason(
                "There is no Ray cluster to look at. Set MARIN_CLUSTER to the address of its dashboard."
            )
        findings = asyncio.run(_look_twice(connect(settings), context.instance))
    except (SettingError, LocalClusterError, UnreachableError, RefusedError, ApiError) as error:
        return dg.SkipReason(str(error))
    _tell(context, findings.all)
    return dg.SkipReason(findings.summary())


async def _look_twice(api: JobsApi, instance: dg.DagsterInstance) -> Findings:
    """Jobs and runs change while one looks, and a run may be about to submit a job anew: what does not fit at first
    is looked at again."""
    async with api:
        findings = await _look(api, instance)
        if not findings.all:
            return findings
        await asyncio.sleep(LOOK_AGAIN_S)
        return (await _look(api, instance)).seen_before(findings)


async def _look(api: JobsApi, instance: dg.DagsterInstance) -> Findings:
    jobs = await api.list()
    runs = _runs(instance, {job.metadata["marin/run_id"] for job in jobs if is_a_step(job)})
    return compare(jobs, runs, time.time())


def _runs(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> dict[str, Run]:
    """Those of these runs that this deployment has, and all that are under way, by run id."""
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


def _tell(context: dg.SensorEvaluationContext, findings: Iterable[Finding]) -> None:
    """Each in the tick's log, and once in its run's. The cursor holds what has been told, one in a line."""
    told = set((context.cursor or "").splitlines())
    findings = list(findings)
    for finding in findings:
        context.log.warning(finding.sentence)
        run = context.instance.get_run_by_id(finding.run_id)
        if finding.key not in told and run is not None:
            context.instance.report_engine_event(finding.sentence, dagster_run=run)
    context.update_cursor("\n".join(sorted({finding.key for finding in findings})))
