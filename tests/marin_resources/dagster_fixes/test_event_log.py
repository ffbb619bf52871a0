from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from sqlalchemy import create_engine

YAML = """
telemetry: {enabled: false}
event_log_storage: {module: %s, class: PooledSqliteEventLogStorage, config: {}}
"""
MODULE = "marin_resources.dagster_fixes.event_log"


@dg.asset(check_specs=[dg.AssetCheckSpec("fine", asset="numbers")])
def numbers() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"n": 3}, check_results=[dg.AssetCheckResult(check_name="fine", passed=True)])


@pytest.fixture
def home(dagster_home: Path) -> Path:
    """A home whose event log is ours."""
    (dagster_home / "dagster.yaml").write_text(YAML % MODULE)
    return dagster_home


def test_what_is_logged_is_where_dagster_itself_looks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.KEPT", 2)
    with dg.DagsterInstance.get() as instance:
        assert type(instance.event_log_storage).__name__ == "PooledSqliteEventLogStorage"
        runs = [dg.materialize([numbers], instance=instance).run_id for _ in range(4)]
        messages = {run_id: [e.message for e in instance.all_logs(run_id)] for run_id in runs}
        assert len(instance.event_log_storage._kept) <= 2  # type: ignore[attr-defined]
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.get() as plain:
        assert type(plain.event_log_storage).__name__ == "SqliteEventLogStorage"
        assert {run_id: [e.message for e in plain.all_logs(run_id)] for run_id in runs} == messages
        assert plain.get_latest_materialization_event(dg.AssetKey("numbers")).run_id == runs[-1]


@pytest.mark.usefixtures("home")
def test_the_events_of_a_run_are_stored_by_open_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster creates an engine for each event: here only databases are created so."""
    created: list[str] = []

    def counted(url: str, **options: Any) -> Any:
        created.append(url)
        return create_engine(url, **options)

    monkeypatch.setattr(sqlite_event_log, "create_engine", counted)
    with dg.DagsterInstance.get() as instance:
        run_id = dg.materialize([numbers], instance=instance).run_id
        events = instance.all_logs(run_id)
    assert len(created) <= 4 < len(events), "two for the database of the run, and two for the index"


@pytest.mark.usefixtures("home")
def test_a_wiped_history_begins_anew() -> None:
    with dg.DagsterInstance.get() as instance:
        run_id = dg.materialize([numbers], instance=instance).run_id
        instance.wipe()
        assert instance.all_logs(run_id) == []
        again = dg.materialize([numbers], instance=instance)
        assert again.success
        assert instance.all_logs(again.run_id)


def test_a_deleted_run_leaves_no_file(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        gone, kept = (dg.materialize([numbers], instance=instance).run_id for _ in range(2))
        assert list(home.rglob(f"{gone}*.db"))
        instance.delete_run(gone)
        assert not list(home.rglob(f"{gone}*.db*"))
        assert instance.all_logs(kept)
        assert instance.get_latest_materialization_event(numbers.key).run_id == kept
