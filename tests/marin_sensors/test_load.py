"""The sensors and schedules of a deployment are found in its files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from toy_steps import toy

from marin_assets.assets.assemble import assemble, graph_of
from marin_assets.assets.factory import asset_key
from marin_assets.catalog.experiments_folder import Experiments, load_experiments
from marin_resources.configuration.code_packages import SHIPPED_SENSORS
from marin_sensors.load import load_deployed
from marin_sensors.queries.materialized_versions import steps_of

SENSOR = """
import dagster as dg

@dg.sensor(name={name!r})
def of_ours(context): ...
"""
SCHEDULE = """
from marin_sensors.nightly_backfill import nightly_backfill

nightly = nightly_backfill("nightly", ["a"], "0 2 * * *")
"""

REPORT = """
from marin_sensors.weekly_report import weekly_report

report, every_monday = weekly_report({name!r}, cron="0 7 * * 1")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(importlib.import_module(SHIPPED_SENSORS), "__path__", [str(tmp_path)])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"{SHIPPED_SENSORS}.")]:
        del sys.modules[name]


def test_what_is_deployed_by_default() -> None:
    deployed = load_deployed()
    assert {sensor.name: sensor.default_status.value for sensor in deployed.sensors} == {
        "budget": "STOPPED",
        "new_deliveries": "STOPPED",
        "stale_leases": "RUNNING",
        "failures": "STOPPED",
        "unsynced": "RUNNING",
        "waiting_logs": "RUNNING",
    }
    assert {schedule.name: schedule.default_status.value for schedule in deployed.schedules} == {
        "canary": "STOPPED",
        "nightly_backfill": "STOPPED",
        "weekly_report": "STOPPED",
    }
    assert deployed.left_out == {}
    for instigator in (*deployed.sensors, *deployed.schedules):
        assert len(instigator.description or "") > 40, f"the page of {instigator.name} explains it"
    definitions = assemble(Experiments({}, {}), deployed.sensors, deployed.schedules, assets=deployed.assets)
    assert len(definitions.get_repository_def().sensor_defs) == 6, "also without an experiment"


def test_what_is_deployed_fits_the_experiments_and_marks_what_it_makes_alone() -> None:
    experiments = load_experiments()
    deployed = load_deployed()
    repository = assemble(
        experiments, deployed.sensors, deployed.schedules, assets=deployed.assets
    ).get_repository_def()
    graph = repository.asset_graph
    marked = {
        key.to_user_string()
        for sensor in repository.sensor_defs
        if sensor.asset_selection is not None
        for key in sensor.asset_selection.resolve(graph)
    }
    assert marked == {"text_deliveries/raw", "text_deliveries/documents", "text_deliveries/tokenized"}
    sets = {graph.get(dg.AssetKey(name.split("/"))).partitions_def for name in marked}
    assert sets == {dg.DynamicPartitionsDefinition(name="deliveries")}


def test_what_concerns_clusters_is_deployed_where_one_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", "http://127.0.0.1:8265")
    monkeypatch.delitem(sys.modules, f"{SHIPPED_SENSORS}.orphans", raising=False)
    [orphans] = [sensor for sensor in load_deployed().sensors if sensor.name == "orphaned_jobs"]
    assert orphans.default_status is dg.DefaultSensorStatus.RUNNING
    monkeypatch.delitem(sys.modules, f"{SHIPPED_SENSORS}.orphans")


def test_a_file_may_have_no_sensor_in_this_deployment(folder: Path) -> None:
    (folder / "elsewhere.py").write_text("import os\n\nours = None\n")
    deployed = load_deployed()
    assert (deployed.sensors, deployed.left_out) == ((), {})


def test_each_file_adds_its_own_and_a_broken_one_takes_nothing_else_away(folder: Path) -> None:
    for name in ("one", "other", "same"):
        (folder / f"{name}.py").write_text(SENSOR.format(name="one" if name == "same" else name))
    (folder / "night.py").write_text(SCHEDULE)
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    (folder / "empty.py").write_text("x = 1\n")
    deployed = load_deployed()
    assert [sensor.name for sensor in deployed.sensors] == ["one", "other"]
    assert [schedule.name for schedule in deployed.schedules] == ["nightly"]
    assert {name: why.partition(" is left out: ")[2] for name, why in deployed.left_out.items()} == {
        "broken": "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        "empty": "ValueError: it has no sensor, no schedule and no asset. Assign one to a name in it",
        "same": "ValueError: another file has a sensor or schedule 'one' too. Rename one of them",
    }
    definitions = assemble(Experiments({}, {}), deployed.sensors, deployed.schedules, deployed.left_out)
    repository = definitions.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {"one", "other"}
    assert {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()} == {
        f"left_out/sensors_{name}" for name in ("broken", "empty", "same")
    }


def test_a_file_may_bring_an_asset_that_no_step_makes(folder: Path) -> None:
    for file, name in (("mine", "mine"), ("same", "same"), ("zz_same", "same"), ("of_a_step", "taken")):
        (folder / f"{file}.py").write_text(REPORT.format(name=name))
    deployed = load_deployed({dg.AssetKey("taken"), dg.AssetKey(["toy", "a"])})
    assert [asset.key.to_user_string() for asset in deployed.assets] == ["mine", "same"]
    assert [schedule.name for schedule in deployed.schedules] == ["mine", "same"]
    assert {name: why.partition(" is left out: ")[2] for name, why in deployed.left_out.items()} == {
        "of_a_step": "ValueError: a step has the asset key 'taken' too. Rename one of them",
        "zz_same": "ValueError: another file has a sensor or schedule 'same' too. Rename one of them",
    }
    experiments = Experiments({"toys": (toy("a"),)}, {})
    assert {asset_key(node) for node in graph_of(experiments)} == {dg.AssetKey(["toy", "a"])}
    definitions = assemble(experiments, schedules=deployed.schedules, assets=deployed.assets)
    repository = definitions.get_repository_def()
    assert {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()} == {"toy/a", "mine", "same"}
    assert [key.to_user_string() for key in steps_of(repository.asset_graph)] == ["toy/a"]
    assert repository.get_job("mine_job").asset_layer.selected_asset_keys == {dg.AssetKey("mine")}
    assert repository.get_job("toys").asset_layer.selected_asset_keys == {dg.AssetKey(["toy", "a"])}


def test_two_files_with_the_same_asset_are_not_both_loaded(folder: Path) -> None:
    for file in ("one", "two"):
        (folder / f"{file}.py").write_text("import dagster as dg\n\n@dg.asset\ndef ours(): ...\n")
    deployed = load_deployed()
    assert len(deployed.assets) == 1
    assert deployed.left_out["two"].endswith("ValueError: another file has an asset 'ours' too. Rename one of them")
