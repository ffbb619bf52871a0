from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from dagster_homes import laptop_home

YAML = """
telemetry: {enabled: false}
event_log_storage: {module: %s, class: PooledSqliteEventLogStorage, config: {}}
"""
MODULE = "marin_resources.dagster_fixes.event_log"


@dg.asset(check_specs=[dg.AssetCheckSpec("fine", asset="numbers")])
def numbers() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"n": 3}, check_results=[dg.AssetCheckResult(check_name="fine", passed=True)])


def test_what_is_logged_is_where_dagster_itself_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    (home / "dagster.yaml").write_text(YAML % MODULE)
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


def test_a_wiped_history_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    (home / "dagster.yaml").write_text(YAML % MODULE)
    with dg.DagsterInstance.get() as instance:
        run_id = dg.materialize([numbers], instance=instance).run_id
        instance.wipe()
        assert instance.all_logs(run_id) == []
        again = dg.materialize([numbers], instance=instance)
        assert again.success
        assert instance.all_logs(again.run_id)


def test_a_deleted_run_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(laptop_home(tmp_path / "home")))
    with dg.DagsterInstance.get() as instance:
        gone, kept = (dg.materialize([numbers], instance=instance).run_id for _ in range(2))
        assert list((tmp_path / "home").rglob(f"{gone}*.db"))
        instance.delete_run(gone)
        assert not list((tmp_path / "home").rglob(f"{gone}*.db*"))
        assert instance.all_logs(kept)
        assert instance.get_latest_materialization_event(numbers.key).run_id == kept


def test_the_failure_of_a_run_is_read_when_the_run_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's daemon looks once at a run that has failed, and ignores one that is not marked."""
    monkeypatch.setenv("DAGSTER_HOME", str(laptop_home(tmp_path / "home")))
    with dg.DagsterInstance.get() as instance:
        runs = [create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED) for _ in range(2)]
        log = instance.event_log_storage
        seen: list[int] = []
        mark = instance.run_storage.handle_run_event

        def look_and_mark(*args: Any) -> None:
            seen.append(len(log.get_logs_for_all_runs_by_log_id(-1, {dg.DagsterEventType.RUN_FAILURE})))
            mark(*args)

        monkeypatch.setattr(instance.run_storage, "handle_run_event", look_and_mark)
        for run in runs:
            instance.report_run_failed(run)
        assert seen == [0, 1]
        assert len(log.get_logs_for_all_runs_by_log_id(-1, {dg.DagsterEventType.RUN_FAILURE})) == 2

        monkeypatch.setattr(instance.run_storage, "handle_run_event", lambda *_: None)
        unmarked = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
        instance.report_run_failed(unmarked)
        monkeypatch.setattr("marin_resources.dagster_fixes.failure_order.MARKED_S", 0.0)
        assert len(log.get_logs_for_all_runs_by_log_id(-1, {dg.DagsterEventType.RUN_FAILURE})) == 3
