"""Some partitions of an asset are forgotten, and the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from dagster_homes import deployed_instance, instance_at, laptop_home, new_home
from partitioned_pair import KEYS, run_all
from postgres_server import postgres

from marin_resources.dagster_fixes.partition_wipes import wipe_partitions

ASSET = dg.AssetKey("two")
GONE, KEPT = list(KEYS[:2]), set(KEYS[2:])


@pytest.fixture(params=["ours", "as published", pytest.param("Postgres", marks=pytest.mark.long)])
def instance(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "home"
    if request.param == "Postgres":
        with postgres() as server, deployed_instance(home, server.create("wiped"), monkeypatch) as instance:
            yield instance
    else:
        create = laptop_home if request.param == "ours" else new_home
        with instance_at(create(home), monkeypatch) as instance:
            yield instance


def cached(instance: dg.DagsterInstance) -> set[str]:
    """The materialized partitions, as the UI's bar has them."""
    partitions = dg.StaticPartitionsDefinition(list(KEYS))
    status = get_and_update_asset_status_cache_value(instance, ASSET, partitions)
    return set(status.deserialize_materialized_partition_subsets(partitions).get_partition_keys()) if status else set()


def test_forgotten_partitions_are_missing_the_others_are_there_and_the_logs_of_runs_are_whole(
    instance: dg.DagsterInstance,
) -> None:
    run = run_all(instance)
    assert cached(instance) == set(KEYS)
    logged = len(instance.all_logs(run.run_id))
    wipe_partitions(instance, ASSET, GONE)
    assert cached(instance) == instance.get_materialized_partitions(ASSET) == KEPT
    assert len(instance.all_logs(run.run_id)) == logged
    newest = instance.get_latest_materialization_event(ASSET)
    assert newest is not None
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.partition in KEPT
    instance.report_runless_asset_event(dg.AssetMaterialization(ASSET, partition=GONE[0]))
    assert cached(instance) == KEPT | {GONE[0]}


def test_all_partitions_can_be_forgotten(instance: dg.DagsterInstance) -> None:
    run_all(instance)
    wipe_partitions(instance, ASSET, [*KEYS, "of another set"])
    assert instance.get_latest_materialization_event(ASSET) is None
    assert cached(instance) == set()
