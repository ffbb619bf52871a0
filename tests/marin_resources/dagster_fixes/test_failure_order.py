"""The event that a run has failed is read when the run is marked, so that Dagster's daemon retries it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, EngineEventData, JobFailureData
from dagster._core.storage.dagster_run import RunRecord
from dagster._core.test_utils import create_run_for_test
from dagster._daemon.auto_run_reexecution import event_log_consumer
from dagster_homes import laptop_home

from marin_resources.dagster_fixes.failure_order import MARKED_S


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(laptop_home(tmp_path / "home")))
    with dg.DagsterInstance.get() as instance:
        yield instance


def failure_of(run: dg.DagsterRun, *, ago_s: float = 0) -> dg.EventLogEntry:
    event = DagsterEvent(dg.DagsterEventType.RUN_FAILURE.value, run.job_name, event_specific_data=JobFailureData(None))
    return dg.EventLogEntry(
        error_info=None,
        level=40,
        user_message="",
        run_id=run.run_id,
        timestamp=time.time() - ago_s,
        job_name=run.job_name,
        dagster_event=event,
    )


def failures(instance: dg.DagsterInstance) -> list[str]:
    """The ids of the runs whose failure the daemon reads."""
    events = instance.event_log_storage.get_logs_for_all_runs_by_log_id(
        dagster_event_type={dg.DagsterEventType.RUN_FAILURE}
    )
    return [event.run_id for event in events.values()]


def test_the_failure_of_a_run_is_read_when_the_run_is_marked(
    laptop: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster stores the event, then marks the run. Its daemon reads the event once, and ignores a run without mark."""
    runs = [create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED) for _ in range(2)]
    before_marks: list[list[str]] = []
    mark = laptop.run_storage.handle_run_event

    def read_and_mark(*arguments: Any) -> None:
        before_marks.append(failures(laptop))
        mark(*arguments)

    monkeypatch.setattr(laptop.run_storage, "handle_run_event", read_and_mark)
    for run in runs:
        laptop.report_run_failed(run)
    assert before_marks == [[], [runs[0].run_id]]
    assert failures(laptop) == [run.run_id for run in runs]


def test_a_failure_after_one_that_waits_is_read_after_it(laptop: dg.DagsterInstance) -> None:
    """As the daemon remembers the last event that it has read."""
    first, second = (create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED) for _ in range(2))
    laptop.event_log_storage.store_event(failure_of(first))
    laptop.report_run_failed(second, "lost")
    assert failures(laptop) == []
    laptop.run_storage.handle_run_event(first.run_id, failure_of(first).get_dagster_event())
    assert failures(laptop) == [first.run_id, second.run_id]


def test_a_failure_whose_run_is_never_marked_is_read_after_a_minute(laptop: dg.DagsterInstance) -> None:
    run = create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED)
    laptop.event_log_storage.store_event(failure_of(run, ago_s=MARKED_S + 1))
    assert failures(laptop) == [run.run_id]


def test_the_daemon_handles_a_run_that_it_saw_between_event_and_mark(
    laptop: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[dg.DagsterRunStatus] = []

    def note(workspace: Any, records: list[RunRecord], log: Any) -> Iterator[None]:
        statuses.extend(record.dagster_run.status for record in records)
        yield

    monkeypatch.setattr(event_log_consumer, "consume_new_runs_for_automatic_reexecution", note)
    daemon = event_log_consumer.EventLogConsumerDaemon()
    workspace: Any = SimpleNamespace(instance=laptop)
    run = create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED)
    laptop.report_engine_event("it has begun", run, EngineEventData())
    list(daemon.run_iteration(workspace))  # notes where the log ends
    entry = failure_of(run)
    laptop.event_log_storage.store_event(entry)
    list(daemon.run_iteration(workspace))
    laptop.run_storage.handle_run_event(run.run_id, entry.get_dagster_event())
    list(daemon.run_iteration(workspace))
    assert statuses == [dg.DagsterRunStatus.FAILURE]
