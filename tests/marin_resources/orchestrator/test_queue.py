"""The queue with the deployment's dagster.yaml: which runs leave it, and which wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.execution.api import create_execution_plan
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster_homes import new_home
from running import definitions_of
from toy_steps import toy

from marin_resources.configuration.settings import project_root
from marin_resources.dagster_fixes.run_attribution import TAG
from marin_resources.hardware.resources import Resources, cpu, gpu

PROFILES = ("deploy/vm/dagster.yaml", "deploy/kubernetes/dagster.yaml")
ABOUT_THE_QUEUE = ("concurrency", "run_coordinator")
ORIGIN = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("marin"), "repository"), "experiment")


@pytest.fixture(params=PROFILES)
def deployed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    settings = yaml.safe_load((project_root() / request.param).read_text())
    home = new_home(tmp_path / "home")
    (home / "dagster.yaml").write_text(yaml.safe_dump({key: settings[key] for key in ABOUT_THE_QUEUE}))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


def queue(instance: dg.DagsterInstance, resources: Resources, count: int, user: str) -> list[str]:
    """The ids of so many queued runs of one user, each of a step with the resources."""
    job = definitions_of([toy("step", resources=resources)]).resolve_job_def("experiment")
    plan = create_execution_plan(job, {})
    return [
        instance.create_run_for_job(
            job,
            execution_plan=plan,
            status=dg.DagsterRunStatus.QUEUED,
            tags={TAG: user},
            remote_job_origin=ORIGIN,
        ).run_id
        for _ in range(count)
    ]


def leave(instance: dg.DagsterInstance) -> set[str]:
    """The runs that the daemon takes from the queue now."""
    daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)
    return {run.run_id for run in daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), None)}


def test_an_accelerator_has_a_limit_of_its_own(deployed: dg.DagsterInstance) -> None:
    deployed.event_log_storage.set_concurrency_slots("gpu_H100", 2)
    on_gpus = queue(deployed, gpu("H100"), 4, "ada")
    others = [*queue(deployed, cpu(1), 2, "ada"), *queue(deployed, gpu("A100"), 1, "ada")]
    assert leave(deployed) == {*on_gpus[:2], *others}


def test_one_user_does_not_keep_the_others_out(deployed: dg.DagsterInstance) -> None:
    many = queue(deployed, cpu(1), 12, "ada")
    few = queue(deployed, cpu(1), 2, "grace")
    assert leave(deployed) == {*many[:10], *few}
