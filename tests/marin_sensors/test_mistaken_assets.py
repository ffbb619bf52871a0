"""A mistake in one sensor or schedule is a sentence on its own page: the code location loads, with all others."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from partition_steps import part
from running import definitions_of

from marin_assets.step.partitions.sets import dynamic, static
from marin_sensors.dataset_revision import dataset_revision
from marin_sensors.new_checkpoints import new_checkpoints
from marin_sensors.new_raw_data import new_raw_data
from marin_sensors.nightly_backfill import nightly_backfill

SENSORS: list[Callable[[list[str]], dg.SensorDefinition]] = [
    lambda assets: new_raw_data("watch", "/x/{drop}/*", partitions="drops", assets=assets),
    lambda assets: new_checkpoints("watch", "parts/plain", partitions="drops", assets=assets),
    lambda assets: dataset_revision("watch", "hf://datasets/c4", partitions="drops", assets=assets),
]
MISTAKES = [
    (["parts/drosp"], "is not in the code location. Did you mean 'parts/drops'?"),
    (["parts/drops", "parts/langs"], "its asset 'parts/langs' has other partitions. Give its step"),
    (["parts/plain"], "its asset 'parts/plain' has other partitions. Give its step"),
]


def definitions(tmp_path: Path, **more: object) -> dg.Definitions:
    calls = tmp_path / "calls"
    steps = [part("drops", dynamic("drops"), calls), part("langs", static("en"), calls), part("plain", None, calls)]
    found = dg.Definitions.merge(definitions_of(steps), dg.Definitions(**more))  # type: ignore[arg-type]
    dg.Definitions.validate_loadable(found)
    return found


@pytest.mark.parametrize("make", SENSORS)
@pytest.mark.parametrize(("assets", "sentence"), MISTAKES)
def test_of_a_sensor(
    make: Callable[[list[str]], dg.SensorDefinition],
    assets: list[str],
    sentence: str,
    tmp_path: Path,
    prefix: Path,
) -> None:
    sensor = make(assets)
    repository = definitions(tmp_path, sensors=[sensor]).get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, repository_def=repository)
        assert sentence in (sensor.evaluate_tick(context).skip_message or "")


@pytest.mark.parametrize(
    ("assets", "sentence"),
    [
        (["parts/drosp"], "Asset 'parts/drosp' is not in the code location."),
        (["parts/drops", "parts/langs"], "have different partitions. Make a schedule for each."),
        (["parts/plain"], "Asset 'parts/plain' has no partitions."),
    ],
)
def test_of_a_schedule(
    assets: list[str], sentence: str, tmp_path: Path, prefix: Path, instance: dg.DagsterInstance
) -> None:
    nightly = nightly_backfill("nightly", assets, "0 2 * * *")
    context = dg.build_schedule_context(
        instance=instance,
        repository_def=definitions(tmp_path, schedules=[nightly]).get_repository_def(),
        scheduled_execution_time=datetime.datetime(2026, 1, 5, 2, tzinfo=datetime.UTC),
    )
    assert sentence in (nightly.evaluate_tick(context).skip_message or "")
