"""Dagster on Postgres, as a deployment has it: few questions about its tables, events in batches, kept connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
from dagster_homes import deployed_instance
from partitioned_pair import KEYS, run_all, stored_by_two_runs
from postgres_server import Postgres, postgres

from marin_resources.dagster_fixes.event_batches import VARIABLE
from marin_resources.dagster_fixes.postgres import KEPT_CONNECTIONS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture
def instance(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    with deployed_instance(tmp_path / "home", new_database(server), monkeypatch) as instance:
        yield instance


def new_database(server: Postgres) -> str:
    return server.create(f"kept_{time.time_ns()}")


def statements_of(instance: dg.DagsterInstance) -> list[str]:
    """The statements that the event log sends from now on."""
    statements: list[str] = []
    sqlalchemy.event.listen(
        instance.event_log_storage._engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )
    return statements


def test_the_tables_are_looked_at_once(instance: dg.DagsterInstance) -> None:
    statements = statements_of(instance)
    for key in "abc":
        instance.report_runless_asset_event(dg.AssetMaterialization(key))
        assert [record.asset_entry.asset_key for record in instance.get_asset_records([dg.AssetKey(key)])]
    about_tables = [each for each in statements if "pg_catalog.pg_attribute" in each]
    assert len(about_tables) == 2  # one for each of the two columns that Dagster asks for


@pytest.mark.parametrize("size", ["7", "500"])
def test_what_a_batch_stores_is_what_is_stored_one_by_one(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    stored = []
    for batch in ("0", size):
        monkeypatch.setenv(VARIABLE, batch)
        with deployed_instance(tmp_path / batch, new_database(server), monkeypatch) as instance:
            stored.append(stored_by_two_runs(instance))
    assert stored[0] == stored[1]
    assert stored[0][0]["materialized"]["two"] == set(KEYS)


def test_a_run_of_many_partitions_is_created_by_few_statements(instance: dg.DagsterInstance) -> None:
    statements = statements_of(instance)
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
