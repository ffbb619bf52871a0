"""The sensors and schedules of a deployment are found in its files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from marin_assets.assets.assemble import assemble
from marin_assets.plan.experiments_folder import Experiments
from marin_sensors.load import FOLDER, load_deployed

SENSOR = """
import dagster as dg

@dg.sensor(name={name!r})
def of_ours(context): ...
"""
SCHEDULE = """
from marin_sensors.nightly_backfill import nightly_backfill

nightly = nightly_backfill("nightly", ["a"], "0 2 * * *")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(importlib.import_module(FOLDER), "__path__", [str(tmp_path)])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"{FOLDER}.")]:
        del sys.modules[name]


def test_what_is_deployed_by_default() -> None:
    deployed = load_deployed()
    assert {sensor.name: sensor.default_status.value for sensor in deployed.sensors} == {
        "stale_leases": "RUNNING",
        "orphaned_jobs": "STOPPED",
        "failures": "STOPPED",
        "outdated": "RUNNING",
    }
    assert (deployed.schedules, deployed.left_out) == ((), {})
    definitions = assemble(Experiments({}, {}), deployed.sensors)
    assert len(definitions.get_repository_def().sensor_defs) == 4, "also without an experiment"


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
