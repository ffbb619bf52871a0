"""Runs that wait for one job on a cluster: the metrics of the deployment are those of the store."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from cluster_runs import ONE_STEP, env_for, read_until, start_run, write_experiment
from ray_cluster import Cluster
from toy_steps import calls

from marin_resources.metrics.steps import Steps


@pytest.mark.long
@pytest.mark.parametrize(
    ("fn", "counted"),
    [
        ("wait_at_gate", {"computed": 1, "attached": 2}),
        ("fail_at_gate", {"failed": 1}),
    ],
)
def test_three_runs_that_wait_for_one_job_are_one_computation(
    fn: str, counted: dict[str, int], prefix: Path, instance: dg.DagsterInstance, cluster: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    env = env_for(prefix, tmp_path / "dagster", cluster)
    script = write_experiment(tmp_path, gate, fn, source=ONE_STEP)
    steps = Steps(instance=instance)
    steps.read()
    runs = [start_run(script, env)]
    read_until(runs[0], "waiting in process")
    for _ in range(2):
        runs.append(start_run(script, env))
        read_until(runs[-1], "attached to cluster job")
    gate.unlink()
    for run in runs:
        shown, _ = run.communicate(timeout=480)
        assert run.returncode == ("failed" in counted), shown
    steps.read()
    assert dict(steps.outcomes) == counted
    assert len(calls(prefix)) == 1
    assert steps.seconds["compute"] < 480 / 2
