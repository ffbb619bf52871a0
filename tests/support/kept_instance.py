"""An instance of Dagster with something of each kind in it, and what one sees of it."""

from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorType, TickData, TickStatus
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

DELIVERIES = "deliveries"


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name=DELIVERIES))
def dropped(context: dg.AssetExecutionContext) -> None:
    context.log.info("the delivery %s is here", context.partition_key)


def fill(instance: dg.DagsterInstance, keys: list[str]) -> None:
    """A key, a run, a backfill and a tick for each of the keys."""
    instance.add_dynamic_partitions(DELIVERIES, keys)
    for key in keys:
        assert dg.materialize([dropped], instance=instance, partition_key=key).success
        instance.add_backfill(_backfill(key))
        instance.create_tick(
            TickData(
                "origin",
                "sensor",
                InstigatorType.SENSOR,
                TickStatus.SUCCESS,
                timestamp=1.0,
                run_ids=[],
                selector_id=key,
            )
        )


def seen(instance: dg.DagsterInstance) -> dict[str, Any]:
    """All of it that a person could look at."""
    runs = sorted(instance.get_runs(), key=lambda run: run.run_id)
    return {
        "runs": [(run.run_id, run.status, sorted(run.tags.items())) for run in runs],
        "events": {run.run_id: [entry.to_json() for entry in instance.all_logs(run.run_id)] for run in runs},
        "partitions": sorted(instance.get_materialized_partitions(dropped.key)),
        "keys": sorted(instance.get_dynamic_partitions(DELIVERIES)),
        "backfills": sorted(backfill.backfill_id for backfill in instance.get_backfills()),
        "ticks": {key: len(instance.get_ticks("origin", key)) for key in instance.get_dynamic_partitions(DELIVERIES)},
    }


def _backfill(key: str) -> PartitionBackfill:
    location = ManagedGrpcPythonEnvCodeLocationOrigin(
        loadable_target_origin=LoadableTargetOrigin(module_name="x"), location_name="marin"
    )
    return PartitionBackfill(
        backfill_id=f"backfill-{key}",
        status=BulkActionStatus.COMPLETED_SUCCESS,
        from_failure=False,
        tags={},
        backfill_timestamp=1.0,
        partition_set_origin=RemotePartitionSetOrigin(
            repository_origin=RemoteRepositoryOrigin(code_location_origin=location, repository_name="repository"),
            partition_set_name="set",
        ),
        partition_names=[key],
    )
