"""A dagster.yaml of an older release, whose copy is in a DAGSTER_HOME, names the former classes."""

import subprocess
import sys
from pathlib import Path

import pytest

FORMER = """
run_launcher: {module: marin_resources.orchestrator.run_launcher, class: LocalRunLauncher}
event_log_storage: {module: marin_resources.orchestrator.event_log, class: KeptSqliteEventLogStorage, config: {}}
run_storage: {module: marin_resources.orchestrator.databases, class: OnceCreatedRunStorage, config: {}}
schedule_storage: {module: marin_resources.orchestrator.databases, class: OnceCreatedScheduleStorage, config: {}}
run_coordinator:
  module: marin_resources.orchestrator.users
  class: UserRunCoordinator
  config: {requires_user: false}
compute_logs:
  module: marin_resources.orchestrator.compute_logs.manager
  class: StoredComputeLogManager
  config: {prefix: %s}
"""
OPEN = """
import dagster as dg
with dg.DagsterInstance.get() as instance:
    parts = (instance.run_storage, instance.event_log_storage, instance.schedule_storage, instance.run_launcher)
    for part in (*parts, instance.run_coordinator, instance.compute_log_manager):
        print(type(part).__name__)
"""


def test_a_home_with_the_former_class_paths_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dagster.yaml").write_text(FORMER % (tmp_path / "outputs"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    names = subprocess.run([sys.executable, "-c", OPEN], capture_output=True, text=True, check=True).stdout.split()
    assert names == [
        "LockedInitRunStorage",
        "PooledSqliteEventLogStorage",
        "LockedInitScheduleStorage",
        "LocalRunLauncher",
        "AttributingRunCoordinator",
        "StoredComputeLogManager",
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", ["RetryingRunStorage", "RetryingEventLogStorage", "RetryingScheduleStorage"])
def test_the_former_postgres_classes_are_todays(name: str) -> None:
    former = name.replace("Retrying", "Patient")
    code = f"from marin_resources.orchestrator.patient_postgres import {former}; print({former}.__name__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == name
