"""A sensor on logs that wait on this machine for the bucket, because it was away when their run ended.

    from marin_sensors.waiting_logs import waiting_logs

    logs = waiting_logs()

A run uploads its own log, and what earlier runs have left (`marin_resources/dagster_fixes/compute_logs`). This sensor
uploads it when no run begins. It must tick on the machine of the runs, as the code location does.
"""

from __future__ import annotations

import dagster as dg

STORE_S = 30.0
"""In which a tick begins to store a further log. Dagster ends a tick after 60 s."""


def waiting_logs(name: str = "waiting_logs", *, every_s: int = 300) -> dg.SensorDefinition:
    """A sensor named `name` that stores waiting logs each `every_s` seconds. Its last tick counts those that remain."""

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Uploads logs that wait on this machine because the bucket was away when their run ended.",
    )
    def waiting_logs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(_store(context.instance))

    return waiting_logs


def _store(instance: dg.DagsterInstance) -> str:
    """Store what waits, and return a sentence about it."""
    # late, for their weight: a laptop has no bucket of logs
    from marin_resources.dagster_fixes.compute_logs.manager import StoredComputeLogManager
    from marin_resources.dagster_fixes.compute_logs.objects import LogStoreError

    manager = instance.compute_log_manager
    if not isinstance(manager, StoredComputeLogManager):
        return "Logs stay on this machine: dagster.yaml names no place for them."
    try:
        stored = manager.store_what_is_left(STORE_S)
    except LogStoreError as error:
        return f"{manager.waiting()} logs wait on this machine: {error} The next tick tries again."
    return f"{stored} logs were stored in {manager.url}; {manager.waiting()} wait."
