"""Dagster on Postgres, as a deployment has it: few questions about its tables, events in batches, kept connections."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
from partitioned_pair import KEYS, run_all, seen
from postgres_server import Postgres, postgres
from running import ROOT

from marin_resources.dagster_fixes.event_batches import VARIABLE
from marin_resources.dagster_fixes.postgres import KEPT_CONNECTIONS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@contextmanager
def deployed(server: Postgres, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """An instance with the settings of a deployment on one machine."""
    home.mkdir()
    shutil.copy(ROOT / "deploy/vm/dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("MARIN_PREFIX", str(home / "outputs"))
    monkeypatch.setenv("MARIN_POSTGRES_URL", server.create(f"kept_{time.time_ns()}"))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def instance(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    with deployed(server, tmp_path / "home", monkeypatch) as instance:
        yield instance


def test_the_tables_are_looked_at_once(instance: dg.DagsterInstance) -> None:
    statements: list[str] = []
    sqlalchemy.event.listen(
        instance.event_log_storage._engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )
    for key in "abc":
        instance.report_runless_asset_event(dg.AssetMaterialization(key))
        assert [record.asset_entry.asset_key for record in instance.get_asset_records([dg.AssetKey(key)])]
    about_tables = [each for each in statements if "pg_catalog.pg_attribute" in each]
    assert len(about_tables) == 2  # one for each of the two columns that Dagster asks for


@pytest.mark.parametrize("size", ["7", "500"])
def test_what_a_batch_stores_is_what_is_stored_one_by_one(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    found = []
    for batch in ("0", size):
        monkeypatch.setenv(VARIABLE, batch)
        with deployed(server, tmp_path / batch, monkeypatch) as instance:
            first, second = run_all(instance), run_all(instance, KEYS[20])
            assert first.success
            assert second.success
            found.append((seen(instance, first.run_id), seen(instance, second.run_id)))
    assert found[0] == found[1]
    assert found[0][0]["materialized"]["two"] == set(KEYS)


def test_a_run_of_many_partitions_is_created_by_few_statements(instance: dg.DagsterInstance) -> None:
    statements: list[str] = []
    sqlalchemy.event.listen(
        instance.event_log_storage._engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )
    assert run_all(instance).success
    assert len([each for each in statements if each.startswith("INSERT INTO event_logs")]) < len(KEYS)


def test_the_webserver_keeps_connections(instance: dg.DagsterInstance, server: Postgres) -> None:
    instance.optimize_for_webserver(statement_timeout=15_000, pool_recycle=3600, max_overflow=20)
    opened: list[object] = []
    sqlalchemy.event.listen(instance.run_storage._engine, "connect", lambda *given: opened.append(given[0]))
    with ThreadPoolExecutor(KEPT_CONNECTIONS) as people:
        list(people.map(lambda _: instance.get_runs_count(), range(200)))
    assert len(opened) <= KEPT_CONNECTIONS
    server.stop("fast")
    server.start()
    assert instance.get_runs_count() == 0, "a connection that was cut is replaced before it is used"


def test_the_webserver_gives_a_long_question_up(instance: dg.DagsterInstance) -> None:
    instance.optimize_for_webserver(statement_timeout=50, pool_recycle=3600, max_overflow=20)
    with instance.run_storage.connect() as connection, pytest.raises(sqlalchemy.exc.OperationalError, match="timeout"):
        connection.execute(sqlalchemy.text("SELECT pg_sleep(5)"))
