"""The state of Dagster: runs by status, how long they wait, daemons, sensors and schedules."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

NOT_ENDED = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
RUNNING = ("RUNNING", "DECLARED_IN_CODE", "AUTOMATICALLY_RUNNING")


def metrics_of_runs(instance: dg.DagsterInstance) -> Iterator[Metric]:
    now = GaugeMetricFamily("marin_runs", "Runs that have not ended, by Dagster's status.", labels=["status"])
    for status in NOT_ENDED:
        now.add_metric([status.value.lower()], instance.get_runs_count(dg.RunsFilter(statuses=[status])))
    yield now
    ended = CounterMetricFamily("marin_runs_ended", "Runs that have ended, and are not deleted.", labels=["status"])
    for status in ENDED:
        ended.add_metric([status.value.lower()], instance.get_runs_count(dg.RunsFilter(statuses=[status])))
    yield ended
    queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
    oldest = instance.get_run_records(queued, limit=1, ascending=True)
    waits_s = time.time() - oldest[0].create_timestamp.timestamp() if oldest else 0.0
    yield GaugeMetricFamily("marin_oldest_queued_run_seconds", "How long the first of the queue waits.", value=waits_s)


def metrics_of_daemons(instance: dg.DagsterInstance) -> Iterator[Metric]:
    beats = GaugeMetricFamily("marin_daemon_heartbeat_age_seconds", "Since its last heartbeat.", labels=["daemon"])
    for name, beat in sorted(instance.get_daemon_heartbeats().items()):
        beats.add_metric([name], max(0.0, time.time() - beat.timestamp))
    yield beats


def metrics_of_sensors(instance: dg.DagsterInstance) -> Iterator[Metric]:
    """The running sensors and schedules: seconds since the last tick, and whether that failed."""
    ages = GaugeMetricFamily("marin_sensor_tick_age_seconds", "Since its last tick.", labels=["kind", "name"])
    failing = GaugeMetricFamily("marin_sensor_failing", "1 if its last tick failed.", labels=["kind", "name"])
    for state in instance.all_instigator_state():
        if state.status not in RUNNING:
            continue
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        if ticks:
            names = [state.instigator_type.value.lower(), state.instigator_name]
            ages.add_metric(names, max(0.0, time.time() - ticks[0].timestamp))
            failing.add_metric(names, float(ticks[0].is_failure))
    yield from (ages, failing)
