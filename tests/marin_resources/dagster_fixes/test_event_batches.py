"""Events of many partitions are stored together, as if they had been stored one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from partitioned_pair import KEYS, run_all, seen

from marin_resources.dagster_fixes.event_batches import VARIABLE
from marin_resources.dagster_fixes.event_log import PooledSqliteEventLogStorage


@contextmanager
def instance_in(home: Path) -> Iterator[dg.DagsterInstance]:
    """An instance with our event log."""
    log = PooledSqliteEventLogStorage
    ours = {"module": log.__module__, "class": log.__name__, "config": {"base_dir": str(home)}}
    with dg.instance_for_test(temp_dir=str(home), overrides={"event_log_storage": ours}) as instance:
        yield instance


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.delenv(VARIABLE, raising=False)
    with instance_in(tmp_path) as instance:
        yield instance


@pytest.mark.parametrize("size", ["7", "500"])
def test_what_is_stored_is_what_is_stored_one_by_one(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    found = []
    for batch in ("0", size):
        monkeypatch.setenv(VARIABLE, batch)
        home = tmp_path / batch
        home.mkdir()
        with instance_in(home) as instance:
            assert isinstance(instance.event_log_storage, PooledSqliteEventLogStorage)
            first, second = run_all(instance), run_all(instance, KEYS[20])
            assert first.success
            assert second.success
            found.append((seen(instance, first.run_id), seen(instance, second.run_id)))
    assert found[0] == found[1]
    assert found[0][0]["materialized"]["two"] == set(KEYS)


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
