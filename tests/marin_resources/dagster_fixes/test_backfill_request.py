"""A backfill that is stored without a webserver is one that Dagster's daemon carries out."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_homes import YAML, new_home

from marin_resources.dagster_fixes.backfill_request import store_backfill

LOCATION = """
import dagster as dg

@dg.asset(partitions_def=dg.StaticPartitionsDefinition(["a", "b", "c", "d"]))
def parts() -> None: ...

@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="deliveries"))
def deliveries() -> None: ...

@dg.asset(deps=[parts])
def whole() -> None: ...

defs = dg.Definitions(assets=[parts, deliveries, whole])
"""
PARTS, DELIVERIES, WHOLE = dg.AssetKey("parts"), dg.AssetKey("deliveries"), dg.AssetKey("whole")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    home = new_home(tmp_path / "home")
    (home / "dagster.yaml").write_text(f"{YAML}run_coordinator: {{module: dagster, class: QueuedRunCoordinator}}\n")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def location(tmp_path: Path) -> Path:
    path = tmp_path / "location.py"
    path.write_text(LOCATION)
    return path


def asset_graph(location: Path) -> Any:
    spec = importlib.util.spec_from_file_location("location_of_a_backfill", location)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.defs.resolve_asset_graph()


def submitted_by_daemon(instance: dg.DagsterInstance, location: Path) -> dict[str, set[str | None]]:
    """Asset -> the partitions of the runs that the daemon submits for the backfills; None: a run without one."""
    target = LoadableTargetOrigin(executable_path=sys.executable, python_file=str(location))
    origin = InProcessCodeLocationOrigin(loadable_target_origin=target, location_name="marin")
    load = InProcessWorkspaceLoadTarget([origin])
    with WorkspaceProcessContext(instance=instance, workspace_load_target=load) as context:
        errors = list(execute_backfill_iteration(context, logging.getLogger("daemon")))
    assert [error for error in errors if error is not None] == []
    submitted: dict[str, set[str | None]] = {}
    for run in instance.get_runs():
        assert run.status is dg.DagsterRunStatus.QUEUED
        for key in run.asset_selection or ():
            submitted.setdefault(key.to_user_string(), set()).add(run.tags.get("dagster/partition"))
    return submitted


def test_the_daemon_submits_the_partitions_that_are_requested(instance: dg.DagsterInstance, location: Path) -> None:
    instance.add_dynamic_partitions("deliveries", ["x", "y"])
    keys = {PARTS: ["b", "d"], DELIVERIES: ["y"]}
    tags = {"marin/user": "ada"}
    backfill_id = store_backfill(instance, asset_graph(location), keys, title="parts: 3 partitions", tags=tags)
    backfill = instance.get_backfill(backfill_id)
    assert backfill is not None
    assert (backfill.status, backfill.title) == (BulkActionStatus.REQUESTED, "parts: 3 partitions")
    assert submitted_by_daemon(instance, location) == {"parts": {"b", "d"}, "deliveries": {"y"}}
    assert {run.tags["dagster/backfill"] for run in instance.get_runs()} == {backfill_id}
    assert {run.tags["marin/user"] for run in instance.get_runs()} == {"ada"}


def test_an_asset_without_partitions_is_requested_as_a_whole(instance: dg.DagsterInstance, location: Path) -> None:
    store_backfill(instance, asset_graph(location), {WHOLE: []}, title="whole", tags={})
    assert submitted_by_daemon(instance, location) == {"whole": {None}}
