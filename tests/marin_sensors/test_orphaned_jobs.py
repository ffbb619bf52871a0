"""The sensor's tick, with a real instance and a real cluster."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import DagsterRunStatus
from dagster._core.test_utils import create_run_for_test
from dagster._core.utils import make_new_run_id
from ray_cluster import Cluster
from sensor_words import what_is_there
from webhooks import webhook_on_loopback

from marin_resources.dagster_fixes.run_launcher import process_tag
from marin_resources.orchestrator.run_jobs import RunJobs
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi, connect
from marin_sensors import orphaned_jobs as sensor_file
from marin_sensors.orphaned_jobs import orphaned_jobs
from marin_sensors.queries import orphans

WELL = "1 unfinished cluster job, none without a waiting run"


@pytest.fixture
def here(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster as that of this deployment; findings count without the pause before the second query."""
    monkeypatch.setenv("MARIN_CLUSTER", cluster.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", cluster.token_path)
    monkeypatch.setattr(orphans, "STOPPING_S", 0.0)
    monkeypatch.setattr(sensor_file, "RECHECK_S", 0.0)
    return cluster


@pytest.fixture
def submit(here: Cluster) -> Iterator[Callable[[str], str]]:
    """Submit a sleeping job of a run; it is stopped with the test."""
    submitted: list[str] = []

    async def begin(api: JobsApi, submission_id: str, run_id: str) -> None:
        told = {"marin/step": "a", "marin/output": "/outputs/a-1", "marin/attempt": "1", "marin/run_id": run_id}
        async with api:
            await api.submit(
                submission_id=submission_id,
                entrypoint="exec sleep 600",
                runtime_env={},
                metadata=told,
                num_cpus=0.01,
                memory_bytes=None,
            )

    async def end(api: JobsApi) -> None:
        async with api:
            for submission_id in submitted:
                while not (await api.info(submission_id)).status.is_terminal:
                    await api.stop(submission_id)  # again: Ray does not stop one that has not begun
                    await asyncio.sleep(0.1)

    def submit_job(run_id: str) -> str:
        submission_id = f"a-1-{uuid4().hex[:8]}-a1"
        asyncio.run(begin(connect(here.settings()), submission_id, run_id))
        submitted.append(submission_id)
        return submission_id

    yield submit_job
    asyncio.run(end(connect(here.settings())))


class Tick:
    """One evaluation of the sensor, with the cursor of the previous one."""

    def __init__(self, instance: dg.DagsterInstance, before: Tick | None = None) -> None:
        with dg.build_sensor_context(instance=instance, cursor=before.cursor if before else None) as context:
            result = orphaned_jobs()(context)
            assert isinstance(result, dg.SkipReason)
            assert result.skip_message is not None
            self.says, self.last = what_is_there(result.skip_message), result.skip_message
            self.cursor = context.cursor


def a_run(instance: dg.DagsterInstance, status: DagsterRunStatus, process: str | None = None) -> str:
    run_id = make_new_run_id()
    return create_run_for_test(instance, run_id=run_id, status=status, tags=process_tag(run_id, process)).run_id


def engine_events(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [
        event.message or ""
        for entry in instance.all_logs(run_id)
        if (event := entry.dagster_event) is not None and event.event_type_value == "ENGINE_EVENT"
    ]


def test_an_orphan_is_reported_on_the_sensors_page_and_once_in_the_log_of_its_run(
    instance: dg.DagsterInstance, submit: Callable[[str], str]
) -> None:
    run_id = a_run(instance, DagsterRunStatus.FAILURE)
    job = submit(run_id)
    tick = Tick(instance)
    assert f"Cluster job '{job}' of step 'a' is still running, and its run {run_id[:8]} has ended" in tick.says
    assert engine_events(instance, run_id) == [tick.says]
    assert Tick(instance, tick).says == tick.says
    assert len(engine_events(instance, run_id)) == 1


def test_an_orphan_is_told_to_the_webhook_once(
    instance: dg.DagsterInstance, submit: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(a_run(instance, DagsterRunStatus.FAILURE))
    with webhook_on_loopback() as hook:
        monkeypatch.setenv("MARIN_WEBHOOK_URL", hook.url)
        tick = Tick(instance)
        Tick(instance, tick)
        [text] = hook.texts
        assert text == f"*A cluster job has no run: a*\n{tick.says}"
        assert "The last new one: A cluster job has no run: a, 20" in tick.last
        hook.status = 500
        submit(a_run(instance, DagsterRunStatus.FAILURE))
        tick = Tick(instance, tick)
        assert tick.says.endswith("answered 500. The message is sent again later.")
        hook.status = 200
        Tick(instance, tick)
    assert len(hook.texts) == 2
    assert job not in hook.texts[1]


def test_a_cursor_of_an_earlier_form_ends_no_tick(instance: dg.DagsterInstance, here: Cluster) -> None:
    RunJobs(instance, a_run(instance, DagsterRunStatus.STARTED)).set("a", "a-1-lost-a1")
    before = Tick(instance)
    before.cursor = "1234abcd/a-1-lost-a1"
    tick = Tick(instance, before)
    assert tick.says == before.says
    assert json.loads(str(tick.cursor))["keys"] != []


def test_a_run_whose_process_is_gone_leaves_an_orphan_until_another_run_attaches(
    instance: dg.DagsterInstance, submit: Callable[[str], str]
) -> None:
    died = a_run(instance, DagsterRunStatus.STARTED, process=f"{os.uname().nodename}/1/0.00")
    job = submit(died)
    RunJobs(instance, died).set("a", job)
    tick = Tick(instance)
    assert f"the process of its run {died[:8]} is gone" in tick.says
    RunJobs(instance, a_run(instance, DagsterRunStatus.STARTED)).set("a", job)
    tick = Tick(instance, tick)
    assert tick.says.startswith(WELL)
    assert json.loads(str(tick.cursor))["keys"] == []


def test_a_run_that_waits_for_a_job_that_the_cluster_has_not_is_reported_once_in_its_log(
    instance: dg.DagsterInstance, here: Cluster
) -> None:
    run_id = a_run(instance, DagsterRunStatus.STARTED)
    RunJobs(instance, run_id).set("a", "a-1-lost-a1")
    tick = Tick(instance)
    assert (
        f"Run {run_id[:8]} waits for cluster job 'a-1-lost-a1' of step 'a', which the cluster does not know"
        in tick.says
    )
    Tick(instance, tick)
    assert engine_events(instance, run_id) == [tick.says]


@pytest.mark.long
def test_a_job_that_came_between_two_looks_is_no_finding(
    instance: dg.DagsterInstance, submit: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = a_run(instance, DagsterRunStatus.STARTED)
    RunJobs(instance, run_id).set("a", "a-1-not-yet")
    sleep = asyncio.sleep

    async def meanwhile(seconds: float) -> None:
        if seconds == sensor_file.RECHECK_S:
            await asyncio.to_thread(lambda: RunJobs(instance, run_id).set("a", submit(run_id)))
        await sleep(seconds)

    monkeypatch.setattr(sensor_file, "RECHECK_S", 0.0625)
    monkeypatch.setattr(asyncio, "sleep", meanwhile)
    assert Tick(instance).says.startswith(WELL)
    assert engine_events(instance, run_id) == []


@pytest.mark.long
def test_jobs_of_another_deployment_are_only_counted(
    instance: dg.DagsterInstance, submit: Callable[[str], str]
) -> None:
    submit(str(uuid4()))
    assert "; another deployment has " in Tick(instance).says


def test_a_cluster_that_cannot_be_asked_is_a_tick_that_says_why_and_forgets_nothing(
    instance: dg.DagsterInstance, here: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    RunJobs(instance, a_run(instance, DagsterRunStatus.STARTED)).set("a", "a-1-lost-a1")
    told = Tick(instance)
    wrong = tmp_path / "token"
    wrong.write_text("f" * 64)
    wrong.chmod(0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(wrong))
    refused = Tick(instance, told)
    assert "token" in refused.says
    assert "f" * 64 not in refused.says
    monkeypatch.setenv("MARIN_CLUSTER", "http://127.0.0.1:9")
    unreachable = Tick(instance, refused)
    assert "http://127.0.0.1:9" in unreachable.says
    monkeypatch.setenv("MARIN_CLUSTER", "no address")
    misnamed = Tick(instance, unreachable)
    assert "'no address'" in misnamed.says
    assert told.cursor == misnamed.cursor
    assert json.loads(str(told.cursor))["keys"] != []


def test_without_a_cluster_there_is_nothing_to_look_at(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MARIN_CLUSTER", raising=False)
    assert Tick(instance).says.startswith("No Ray cluster is configured. Set MARIN_CLUSTER")


@pytest.mark.parametrize(("address", "status"), [("http://127.0.0.1:8265", "RUNNING"), ("", "STOPPED")])
def test_it_is_on_by_itself_where_there_is_a_cluster(
    address: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", address)
    assert orphaned_jobs().default_status.value == status
