"""Two partitioned assets, their run, and what pages and daemons read of it."""

from typing import Any

import dagster as dg
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

KEYS = [f"k{number:02}" for number in range(25)]
ALL = dg.StaticPartitionsDefinition(KEYS)


@dg.asset(
    partitions_def=ALL,
    code_version="1",
    check_specs=[
        dg.AssetCheckSpec("whole", asset="one"),
    ],
)
def one(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    for key in context.partition_keys:
        context.add_asset_metadata({"key": key}, partition_key=key)
    return dg.MaterializeResult(data_version=dg.DataVersion("v1"), check_results=[dg.AssetCheckResult(passed=True)])


@dg.asset(partitions_def=ALL, deps=[one])
def two(context: dg.AssetExecutionContext) -> None: ...


def run_all(instance: dg.DagsterInstance, first: str = KEYS[0]) -> dg.ExecuteInProcessResult:
    job = dg.Definitions(assets=[one, two]).resolve_implicit_global_asset_job_def()
    tags = {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: KEYS[-1]}
    return job.execute_in_process(instance=instance, tags=tags)


def stored_by_two_runs(instance: dg.DagsterInstance) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is stored by a run of all partitions, and by one of the last five."""
    first, second = run_all(instance), run_all(instance, KEYS[20])
    assert first.success
    assert second.success
    return seen(instance, first.run_id), seen(instance, second.run_id)


def seen(instance: dg.DagsterInstance, run_id: str) -> dict[str, Any]:
    """What pages and daemons read of a run and its assets, but for times and ids."""
    keys = [dg.AssetKey("one"), dg.AssetKey("two")]
    storage = instance.event_log_storage
    records = {
        key.to_user_string(): instance.fetch_materializations(key, limit=1000, ascending=True).records for key in keys
    }
    for found in records.values():
        assert [record.storage_id for record in found] == sorted(record.storage_id for record in found)
    for record in instance.get_asset_records(keys):
        newest = record.asset_entry.last_materialization_record
        assert newest is not None
        assert newest.storage_id == records[record.asset_entry.asset_key.to_user_string()][-1].storage_id
    return {
        "of the run": [(each.dagster_event_type, each.step_key) for each in instance.all_logs(run_id)],
        "materialized": {key.to_user_string(): instance.get_materialized_partitions(key) for key in keys},
        "partitions": {name: sorted(str(record.partition_key) for record in found) for name, found in records.items()},
        "metadata": sorted(
            record.asset_materialization.metadata["key"].value
            for record in records["one"]
            if record.asset_materialization
        ),
        "tags": storage.get_latest_tags_by_partition(
            keys[0], dg.DagsterEventType.ASSET_MATERIALIZATION, ["dagster/data_version"]
        ),
        "planned": len(
            storage.get_event_records(
                dg.EventRecordsFilter(dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED, asset_key=keys[1])
            )
        ),
        "check": str(
            instance.event_log_storage.get_latest_asset_check_execution_by_key([dg.AssetCheckKey(keys[0], "whole")])[
                dg.AssetCheckKey(keys[0], "whole")
            ].status
        ),
    }
