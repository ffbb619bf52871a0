"""Which lost runs a sensor requests again: those that Dagster does not launch again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from dagster_homes import laptop_home

from marin_resources.orchestrator.lost_runs import mark_lost
from marin_sensors.runs.lost_run_retries import AT_MOST, LOST, REQUEST, request_again, tags_of
from marin_sensors.runs.partition_ranges import range_tags

KEY = dg.AssetKey(["deliveries", "raw"])
ONE = {"dagster/partition": "b"}


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """With partitions "a" to "e"."""
    monkeypatch.setenv("DAGSTER_HOME", str(laptop_home(tmp_path / "home")))
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", list("abcde"))
        yield instance


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster has had its time."""
    monkeypatch.setattr("marin_sensors.runs.lost_run_retries.LEFT_TO_DAGSTER", timedelta(0))


def lost(instance: dg.DagsterInstance, tags: dict[str, str], *, sensor: str = "watch") -> str:
    """A run of a sensor that was lost."""
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags={**tags, **tags_of(sensor)})
    instance.report_run_failed(run)
    return run.run_id


def again(instance: dg.DagsterInstance, **options: Any) -> list[dg.RunRequest]:
    return request_again(dg.build_sensor_context(instance=instance), "watch", "deliveries", [KEY], **options)


def launch(request: dg.RunRequest) -> dict[str, str]:
    """The tags of the run that Dagster creates for a request."""
    partition = {"dagster/partition": request.partition_key} if request.partition_key else {}
    return {**request.tags, **partition}


def test_a_lost_run_is_left_to_dagster_for_two_minutes(laptop: dg.DagsterInstance) -> None:
    lost(laptop, ONE)
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_a_run_that_dagster_has_launched_again_is_left_to_it(laptop: dg.DagsterInstance) -> None:
    lost(laptop, {**ONE, "dagster/auto_retry_run_id": "1"})
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_another_lost_run_is_requested_again_once(laptop: dg.DagsterInstance) -> None:
    run = lost(laptop, {**ONE, "marin/drop": "b", "marin/jobs": "{}", "dagster/run_key": "watch: b"})
    lost(laptop, ONE, sensor="another")
    [request] = again(laptop)
    assert (request.partition_key, request.asset_selection) == ("b", [KEY])
    assert request.run_key == f"watch: b after {run}"
    assert request.tags == {**tags_of("watch"), "marin/drop": "b", LOST: run, REQUEST: "1"}
    create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED, tags=launch(request))
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_a_run_of_a_range_is_requested_with_its_range(laptop: dg.DagsterInstance) -> None:
    run = lost(laptop, range_tags("bcd"))
    [request] = again(laptop)
    assert request.partition_key is None
    assert request.tags == {**tags_of("watch"), **range_tags("bcd"), LOST: run, REQUEST: "1"}


@pytest.mark.usefixtures("later")
def test_it_ends_after_so_many_requests(laptop: dg.DagsterInstance) -> None:
    lost(laptop, ONE)
    for number in range(1, AT_MOST + 1):
        [request] = again(laptop)
        assert request.tags[REQUEST] == str(number)
        lost(laptop, launch(request))
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_a_failed_step_a_run_out_of_retries_and_a_deleted_partition_stay_as_they_are(
    laptop: dg.DagsterInstance,
) -> None:
    lost(laptop, {**ONE, "dagster/failure_reason": "STEP_FAILURE"})
    lost(laptop, {**ONE, "dagster/retry_number": "3"})
    lost(laptop, {"dagster/partition": "gone"})
    lost(laptop, range_tags(["b", "gone"]))
    lost(laptop, {})
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_a_run_on_whose_machine_no_ray_runs_is_lost_though_its_step_failed(laptop: dg.DagsterInstance) -> None:
    run = create_run_for_test(laptop, status=dg.DagsterRunStatus.STARTED, tags={**ONE, **tags_of("watch")})
    mark_lost(laptop, run.run_id)
    laptop.report_run_failed(run)
    laptop.add_run_tags(run.run_id, {"dagster/failure_reason": "STEP_FAILURE"})
    [request] = again(laptop)
    assert request.tags[LOST] == run.run_id
    lost(laptop, {**launch(request), "dagster/failure_reason": "STEP_FAILURE"})  # its own step fails: nothing more
    assert again(laptop) == []


@pytest.mark.usefixtures("later")
def test_a_run_with_other_tags_than_asked_for_stays_lost(laptop: dg.DagsterInstance) -> None:
    lost(laptop, {**ONE, "marin/training_version": "old"})
    wanted = lost(laptop, {**ONE, "marin/training_version": "new"})
    [request] = again(laptop, tags={"marin/training_version": "new"})
    assert request.tags[LOST] == wanted
