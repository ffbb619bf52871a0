"""The canary: real experiments in processes of their own, in runs of a real instance."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from cluster_runs import env_for
from jobs_there import JobsThere
from one_sentence import one_sentence
from ray_cluster import Cluster
from running import ROOT
from webhooks import webhook_on_loopback

from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.files import exists, names_in, write_json
from marin_resources.storage.paths import join
from marin_sensors.canary import canary, remove_canary
from marin_sensors.failures import failures

TOYS = """
import sys
sys.path.insert(0, {support!r})
import toy_steps
from marin_assets import executor_main
from toy_steps import toy

if __name__ == "__main__":
    first = toy("first", toy_steps.leave_nothing)
    executor_main([toy("second", toy_steps.{fn}, reads=first)])
"""
COUNTS = """
import pathlib, sys
[prefix] = [sys.argv[n + 1] for n, argument in enumerate(sys.argv) if argument == "--prefix"]
made = pathlib.Path(prefix, "made")
again = made.exists()
made.parent.mkdir(parents=True, exist_ok=True)
made.touch()
print("arguments", sys.argv[1:])
{said}
"""
"""Says what an experiment would say that went wrong in some way."""
NAME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f]{8}"

Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Writes a module with this code; its name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(code: str) -> str:
        name = f"canary_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(code)
        return name

    return write


def toys(fn: str) -> str:
    return TOYS.format(support=str(ROOT / "tests/support"), fn=fn)


def run(instance: dg.DagsterInstance, **options: Any) -> dg.ExecuteInProcessResult:
    """One run of the job of a canary."""
    job = dg.Definitions(schedules=[canary(**options)]).resolve_job_def("canary_job")
    return job.execute_in_process(instance=instance, raise_on_error=False)


def error_of(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    """The sentence of the failure, and the last lines."""
    [event] = [event for event in result.all_events if event.is_step_failure]
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    return str(failure.metadata["error"].value), str(failure.metadata["traceback"].value)


@pytest.mark.long
def test_an_experiment_is_made_anew_and_leaves_nothing(
    module: Module, instance: dg.DagsterInstance, disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    write_json(join(disk_or_gcs_prefix, "canary/of_somebody.json"), {})
    name = module(toys("leave_nothing"))
    for _ in range(2):
        assert run(instance, module=name).success, "anew each time"
    assert names_in(join(disk_or_gcs_prefix, "canary")) == ["of_somebody.json"]
    assert not exists(join(disk_or_gcs_prefix, "toy"))
    assert {record.job_name for record in instance.get_runs()} == {"canary_job"}, "its runs are in a home of their own"
    assert instance.all_asset_keys() == []


@pytest.mark.long
def test_a_step_that_fails_is_told_with_its_log_and_its_outputs_stay(
    module: Module, instance: dg.DagsterInstance, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhook_on_loopback() as hook:
        monkeypatch.setenv("MARIN_WEBHOOK_URL", hook.url)
        told = failures()
        begun = dg.build_sensor_context(instance=instance)
        told(begun)
        result = run(instance, module=module(toys("fail")))
        told(dg.build_sensor_context(instance=instance, cursor=begun.cursor))
    sentence, log = error_of(result)
    [kept] = (prefix / "canary").glob("2*")
    assert one_sentence(Exception(sentence)).startswith("The first run of 'canary_")
    assert "ended with exit code 1 after" in sentence
    assert "the value 1 is not liked" in sentence, "its last line"
    assert f"Its outputs are kept at {str(kept)!r}: look at them, then remove the folder." in sentence
    assert list(kept.glob("toy/first-*"))
    assert "1 computed, 0 reused, 1 failed" in log
    [text] = hook.texts
    assert text.startswith("*A run failed: canary*\nThe first run of 'canary_")
    assert str(kept) in text
    assert "the value 1 is not liked" in text.partition("```")[2]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_on_a_cluster_it_makes_jobs_and_stops_them_at_its_time_limit(
    module: Module,
    instance: dg.DagsterInstance,
    prefix: Path,
    dagster_home: Path,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in env_for(prefix, dagster_home, cluster).items():
        monkeypatch.setenv(variable, value)
    assert run(instance, module=module(toys("leave_nothing"))).success
    assert list((prefix / "canary").iterdir()) == []
    gate = tmp_path / "gate"
    gate.touch()
    waits = toys("wait_at_gate").replace("reads=first", f"reads=first, gate={str(gate)!r}, own_job=True")
    result = run(instance, module=module(waits), timeout_s=60)
    assert "had not ended after 60 s, and was stopped." in error_of(result)[0]
    assert list(prefix.glob("canary/*/toy/second-*/.marin/attempts/1.log")), "its step had begun"
    assert JobsThere(cluster.settings()).newest().status is JobStatus.STOPPED


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            'print("2 computed, 0 reused, 0 failed")',
            "The second run of {module!r} computed 2 outputs that the first had completed, expected none: complete "
            "outputs are not reused.",
        ),
        (
            'print(f"{int(not again)} computed, 2 reused, 0 failed"); sys.exit(again)',
            "The second run of {module!r} ended with exit code 1 after 0 s. Its last line: 0 computed, 2 reused, 0 "
            "failed",
        ),
        (
            'print("0 computed, 2 reused, 0 failed")',
            "The first run of {module!r} computed nothing at an empty prefix, and reused 2 outputs.",
        ),
        (
            'print("all is well")',
            "The first run of {module!r} printed no counts, expected a module that ends in executor_main(…). Its last "
            "line: all is well",
        ),
        (
            "sys.stdout.flush(); import time; time.sleep(600)",
            "The first run of {module!r} had not ended after 2 s, and was stopped. Its last line: KeyboardInterrupt",
        ),
    ],
    ids=["computed again", "exit code", "reused at once", "no counts", "too long"],
)
def test_what_is_wrong_is_said_in_a_sentence(
    said: str, expected: str, module: Module, instance: dg.DagsterInstance, prefix: Path
) -> None:
    name = module(COUNTS.format(said=said))
    result = run(instance, module=name, arguments=["--size", "1"], timeout_s=2)
    sentence, log = error_of(result)
    [kept] = (prefix / "canary").iterdir()
    stays = f" Its outputs are kept at {str(kept)!r}: look at them, then remove the folder."
    sentence = re.sub(r"after [01] s\. Its", "after 0 s. Its", sentence)  # of a busy machine
    assert sentence == expected.format(module=name) + stays
    assert f"arguments ['--size', '1', '--prefix', {str(kept)!r}]" in log
    assert re.fullmatch(NAME, kept.name)
    assert kept.name.endswith(result.run_id[:8])


def test_its_run_is_not_tried_again_and_names_its_process(
    module: Module, instance: dg.DagsterInstance, prefix: Path
) -> None:
    run_id = run(instance, module=module(COUNTS.format(said=""))).run_id
    found = instance.get_run_by_id(run_id)
    assert found is not None
    assert found.tags["dagster/retry_on_asset_or_op_failure"] == "false"
    assert found.tags["marin/schedule"] == "canary"
    assert found.tags[".dagster/marin_process"].startswith(run_id), "a run whose process is gone is marked as failed"


def test_while_one_is_in_progress_none_is_started(instance: dg.DagsterInstance) -> None:
    schedule = canary()
    job = dg.Definitions(schedules=[schedule]).resolve_job_def("canary_job")
    context = dg.build_schedule_context(instance, datetime.datetime(2026, 1, 5, 5, tzinfo=datetime.UTC))
    [request] = schedule.evaluate_tick(context).run_requests or ()
    assert request.run_config == {}
    begun = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=job.tags)
    evaluated = schedule.evaluate_tick(context)
    assert not evaluated.run_requests
    assert evaluated.skip_message == ("The last canary is in progress, so none is started.")
    assert canary("other").evaluate_tick(context).run_requests, "another canary is not waited for"
    instance.report_run_failed(begun)
    assert schedule.evaluate_tick(context).run_requests


def test_it_is_off_and_a_good_neighbour() -> None:
    schedule = canary()
    assert (schedule.name, schedule.cron_schedule, schedule.execution_timezone) == ("canary", "0 5 * * *", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert canary(start=True).default_status is dg.DefaultScheduleStatus.RUNNING
    repository = dg.Definitions(schedules=[canary(), canary("other", timezone="Europe/Zurich")]).get_repository_def()
    assert {"canary_job", "other_job"} <= set(repository.job_names)
    assert list(repository.asset_graph.get_all_asset_keys()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cron": ""}, "The schedule 'canary' has cron='', expected five fields such as '0 5 * * *'."),
        ({"cron": "daily"}, "The schedule 'canary' has cron='daily', expected five fields such as '0 5 * * *'."),
        ({"timezone": "Mars"}, "The schedule 'canary' has timezone='Mars', expected one such as 'Europe/Zurich'."),
        ({"timeout_s": 0}, "The schedule 'canary' has timeout_s=0, expected seconds above 0."),
        (
            {"module": "marin_assets.experiments.quikstart"},
            "There is no module 'marin_assets.experiments.quikstart'. Name that of an experiment, such as "
            "'marin_assets.experiments.quickstart'.",
        ),
        (
            {"arguments": "--scale tiny"},
            "The schedule 'canary' has arguments='--scale tiny', expected a list: ['--scale', 'tiny'].",
        ),
    ],
)
def test_what_it_cannot_be_made_of_is_said_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, ModuleNotFoundError)) as error:
        canary(**options)
    assert one_sentence(error) == sentence


def test_only_the_folder_of_a_canary_is_removed(tmp_path: Path) -> None:
    own = tmp_path / "canary" / "2026-01-05T05-00-00-0a1b2c3d"
    for path in (own, tmp_path / "canary" / "mine", tmp_path / "documents" / own.name, own / "toy"):
        path.mkdir(parents=True, exist_ok=True)
        (path / "file").touch()
    folders = ("canary", "canary/mine", f"documents/{own.name}", "", f"canary/{own.name}/toy", f"canary/{own.name}/..")
    for folder in folders:
        with pytest.raises(ValueError, match="is not the folder of a canary, expected"):
            remove_canary(str(tmp_path), join(str(tmp_path), folder))
    with pytest.raises(ValueError, match="is not the folder of a canary, expected"):
        remove_canary(str(tmp_path / "other"), str(own))
    assert len(list(tmp_path.rglob("file"))) == 4
    remove_canary(str(tmp_path), str(own))
    assert sorted(path.name for path in (tmp_path / "canary").iterdir()) == ["mine"]
