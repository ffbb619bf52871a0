"""In the UI: Terminate ends the job on the cluster, and a redeployment leaves it to the next run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import dagster as dg
import pytest
from cluster_runs import env_for, worker_of
from dagster_dev import dagster_dev
from ray_cluster import Cluster
from running import alive, logged, wait_until, write_location
from toy_steps import calls

from marin_resources.dagster_fixes.console import failure_sentence
from marin_resources.dagster_fixes.run_launcher import process_of

ENDED = ("CANCELED", "FAILURE", "SUCCESS")


@pytest.mark.long
@pytest.mark.parametrize("own_job", [True, False], ids=["own job", "small step"])
def test_terminate_ends_a_job_that_ignores_it_and_a_redeployment_leaves_one(
    cluster: Cluster, prefix: Path, dagster_home: Path, tmp_path: Path, own_job: bool
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    workspace = write_location(tmp_path, gate=gate, fn="ignore_being_told_to_stop", own_job=own_job)
    with dagster_dev(workspace, tmp_path / "dagster.log", env_for(prefix, dagster_home, cluster)) as dev:
        run = dev.launch("toy/slow")
        text = wait_until(logged(prefix, "toy/slow", "waiting in process"), "the step", timeout_s=300)
        worker, child = worker_of(text), int(text.split("child ")[1].split()[0])
        dev.terminate(run)
        gone = lambda: not alive(child) and not (own_job and alive(worker))  # noqa: E731
        wait_until(gone, "what the step started to be gone", timeout_s=5)
        wait_until(lambda: dev.status(run) in ENDED, "the run to end")
        assert dev.status(run) == "CANCELED"

        run = dev.launch("toy/slow")
        wait_until(lambda: len(calls(prefix)) == 2, "the step to begin again", timeout_s=300)
        worker = worker_of(wait_until(logged(prefix, "toy/slow", "waiting in process"), "its log"))
        os.kill(pid_of(run), signal.SIGTERM)
        wait_until(lambda: dev.status(run) in ENDED, "the run to end")
        assert dev.status(run) == "FAILURE"
        [failure] = failures_of(run)
        assert "`marin cluster logs toy-slow-" in failure
        assert alive(worker)
        assert len(calls(prefix)) == 2

        run = dev.launch("toy/slow")
        joined = lambda: any("attached to cluster job" in text for text in dev.messages(run))  # noqa: E731
        wait_until(joined, "the next run", timeout_s=60)
        gate.unlink()
        wait_until(lambda: dev.status(run) in ENDED, "the run to end")
        assert dev.status(run) == "SUCCESS"
        assert len(calls(prefix)) == 2


def pid_of(run_id: str) -> int:
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        return int((process_of(run) or "").split("/")[1])


def failures_of(run_id: str) -> list[str]:
    """What the steps that failed say."""
    with dg.DagsterInstance.get() as instance:
        entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        return [failure_sentence(entry.get_dagster_event()) for entry in entries]
