"""A sensor that reports jobs on the Ray cluster that no run waits for, runs whose job does not exist, jobs that wait
too long for a machine, and steps that continue after their worker was lost.

    from marin_sensors.orphaned_jobs import orphaned_jobs

    orphans = orphaned_jobs(ui="https://dagster.example.org", starved_s=6 * 3600)

A run that dies leaves its jobs running, as the next run attaches to them. Without a next run, they hold the cluster's
machines. The sensor reports them on its own page, in the tick's log, once in the log of the run, and once to the
webhook, if one is configured. It starts nothing and stops nothing. If the cluster cannot be reached, the tick is
skipped with the reason.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
from dagster import RunRecord

from marin_resources.dagster_fixes.run_launcher import is_over
from marin_resources.host.webhook import WEBHOOK
from marin_resources.orchestrator.run_jobs import jobs_of
from marin_resources.types.errors import MarinError
from marin_sensors.queries.orphans import Finding, Findings, Run, compare, is_a_step
from marin_sensors.runs.in_progress import STARTED
from marin_sensors.webhook.channel import Channel
from marin_sensors.webhook.reported_findings import Reported

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi

RECHECK_S = 10.0
"""A run whose job is gone, or whose cluster was unreachable, retries after 5 s at most."""


def orphaned_jobs(
    name: str = "orphaned_jobs",
    *,
    webhook_env: str = WEBHOOK,
    ui: str = "",
    every_s: int = 60,
    per_hour: int = 20,
    starved_s: float = 3600,
    secrets: Sequence[str] = (),
) -> dg.SensorDefinition:
    """A sensor named `name` on the jobs of MARIN_CLUSTER. It runs if a cluster is configured.

    webhook_env    the variable with the webhook's address, which is a secret; without it nothing is sent
    ui             the address of Dagster's UI, for links
    per_hour       posts in an hour at most
    starved_s      seconds that a job may wait for its machine before it is reported
    secrets        names of variables whose values no message shows
    """
    channel = Channel(webhook_env, ui, per_hour, tuple(secrets))
    has_cluster = bool(os.environ.get("MARIN_CLUSTER"))

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if has_cluster else dg.DefaultSensorStatus.STOPPED,
        description=(
            "Reports jobs on the Ray cluster that no run waits for, runs whose job does not exist, jobs that have "
            f"waited {starved_s / 60:g} minutes for a machine, and steps that have lost a worker."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        from marin_resources.ray_tpu.cluster.api.jobs_api import connect
        from marin_resources.ray_tpu.cluster.settings_from_env import each_from_env

        try:
            clusters = each_from_env()
            if not clusters:
                return dg.SkipReason("No Ray cluster is configured. Set MARIN_CLUSTER to the address of its dashboard.")
            findings = asyncio.run(_find_twice(list(map(connect, clusters)), context.instance, starved_s))
        except MarinError as error:
            return dg.SkipReason(str(error))
        return dg.SkipReason(f"{findings.summary()} {_report(context, findings.all, channel)}")

    return sensor


async def _find_twice(clusters: Sequence[JobsApi], instance: dg.DagsterInstance, starved_s: float) -> Findings:
    """Return the findings that hold twice, 10 s apart: jobs and runs change between the two queries, and a run may be
    about to submit its job again."""
    async with AsyncExitStack() as connections:
        for api in clusters:
            await connections.enter_async_context(api)
        findings = await _find(clusters, instance, starved_s)
        if not findings.all:
            return findings
        await asyncio.sleep(RECHECK_S)
        return (await _find(clusters, instance, starved_s)).also_in(findings)


async def _find(clusters: Sequence[JobsApi], instance: dg.DagsterInstance, starved_s: float) -> Findings:
    """All clusters answer, or nothing is found: a job is missing only where none has it."""
    jobs = [job for api in clusters for job in await api.list()]
    runs = _runs(instance, {job.metadata["marin/run_id"] for job in jobs if is_a_step(job)})
    return compare(jobs, runs, time.time(), starved_s)


def _runs(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> dict[str, Run]:
    """The runs of these ids in this deployment, and all runs in progress, by run id."""
    records = {
        record.dagster_run.run_id: record for record in instance.get_run_records(dg.RunsFilter(statuses=STARTED))
    }
    rest = sorted(set(run_ids) - records.keys())
    if rest:
        finished = instance.get_run_records(dg.RunsFilter(run_ids=rest))
        records.update({record.dagster_run.run_id: record for record in finished})
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


def _report(context: dg.SensorEvaluationContext, findings: Sequence[Finding], channel: Channel) -> str:
    """Log each finding in the tick, and once in its run; send it once. Returns a summary for a person."""
    before, now_s = Reported.parse(context.cursor, context.log.warning), time.time()
    for finding in findings:
        context.log.warning(finding.sentence)
        run = context.instance.get_run_by_id(finding.run_id)
        if finding.key not in before.keys and run is not None:
            context.instance.report_engine_event(finding.sentence, dagster_run=run)
    messages = [
        channel.message(finding.key, finding.title, finding.sentence, run_id=finding.run_id) for finding in findings
    ]
    delivery = channel.send(before.sent, messages, now_s)
    reported = replace(before.after({finding.key: finding.title for finding in findings}, now_s), sent=delivery.sent)
    context.update_cursor(reported.text())
    delivery.require()
    return " ".join(filter(None, (reported.sentence(), delivery.sentence())))
