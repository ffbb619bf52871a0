"""An instance of Dagster with something of each kind in it."""

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
