"""Events of many partitions are stored together, as if they had been stored one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster_homes import instance_at, laptop_home
from partitioned_pair import KEYS, run_all, stored_by_two_runs

from marin_resources.dagster_fixes.event_batches import VARIABLE
from marin_resources.dagster_fixes.event_log import PooledSqliteEventLogStorage


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.delenv(VARIABLE, raising=False)
    with instance_at(laptop_home(tmp_path / "home"), monkeypatch) as instance:
        yield instance


@pytest.mark.parametrize("size", ["7", "500"])
def test_what_is_stored_is_what_is_stored_one_by_one(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    stored = []
    for batch in ("0", size):
        monkeypatch.setenv(VARIABLE, batch)
        with instance_at(laptop_home(tmp_path / batch), monkeypatch) as instance:
            assert isinstance(instance.event_log_storage, PooledSqliteEventLogStorage)
            stored.append(stored_by_two_runs(instance))
    assert stored[0] == stored[1]
    assert stored[0][0]["materialized"]["two"] == set(KEYS)


def test_batches_save_transactions(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one, stored = 0, SqliteEventLogStorage.store_event

    def count(self: SqliteEventLogStorage, event: dg.EventLogEntry) -> None:
        nonlocal one_by_one
        one_by_one += 1
        stored(self, event)

    monkeypatch.setattr(SqliteEventLogStorage, "store_event", count)
    assert run_all(instance).success
    assert one_by_one < 2 * len(KEYS)


def test_a_batch_that_cannot_be_stored_is_stored_one_by_one(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is slow")

    monkeypatch.setattr(PooledSqliteEventLogStorage, "store_event_batch", fail)
    assert run_all(instance).success
    assert instance.get_materialized_partitions(dg.AssetKey("two")) == set(KEYS)
