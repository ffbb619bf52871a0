"""On a cluster a step is a job: it goes on when its run dies, and the next run attaches to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_runs import ONE_STEP, SCRIPT, env_for, job_of, read_until, start_run, worker_of, write_experiment
from ray_cluster import Cluster
from running import alive, logged, wait_until
from toy_steps import calls


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    gate = tmp_path / "gate"
    gate.touch()
    return gate


@pytest.fixture(params=[pytest.param(True, id="own job"), pytest.param(False, id="small step", marks=pytest.mark.long)])
def own_job(request: pytest.FixtureRequest) -> bool:
    """Whether the steps are jobs of their own, or a batch job runs them."""
    return request.param


@pytest.fixture
def write(tmp_path: Path, gate: Path, own_job: bool) -> Callable[[str], Path]:
    """Writes an experiment whose second step is this function."""
    return lambda fn: write_experiment(tmp_path, gate, fn, own_job=own_job)


@pytest.fixture
def env(prefix: Path, dagster_home: Path, cluster: Cluster) -> dict[str, str]:
    return env_for(prefix, dagster_home, cluster)


@pytest.mark.parametrize(
    ("source", "summary", "made"),
    [
        pytest.param(ONE_STEP, "1 computed, 0 reused, 0 failed", "b", id="one step"),
        pytest.param(SCRIPT, "2 computed, 1 reused, 0 failed", "abc", id="the second of three", marks=pytest.mark.long),
    ],
)
def test_a_killed_run_leaves_its_job_and_the_next_one_attaches_to_it(
    source: str, summary: str, made: str, prefix: Path, env: dict[str, str], gate: Path, tmp_path: Path, own_job: bool
) -> None:
    script = write_experiment(tmp_path, gate, source=source, own_job=own_job)
    first = start_run(script, env)
    worker = worker_of(wait_until(logged(prefix, "toy/b", "waiting in process", by=first), "the step that waits"))
    shown = read_until(first, "waiting in process")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = start_run(script, env)
    shown = read_until(second, "attached to cluster job")
    assert alive(worker)
    gate.unlink()
    rest, _ = second.communicate(timeout=480)
    assert second.returncode == 0, shown + rest
    assert summary in rest
    assert [name.split("-")[0] for name in calls(prefix)] == list(made)


@pytest.mark.long
def test_two_deployments_that_reach_a_step_share_its_job(
    write: Callable[[str], Path], prefix: Path, env: dict[str, str], gate: Path, tmp_path: Path
) -> None:
    script = write("wait_at_gate")
    runs = [start_run(script, {**env, "DAGSTER_HOME": str(tmp_path / name)}) for name in ("one", "two")]
    wait_until(logged(prefix, "toy/b", "waiting in process"), "the second step")
    shown = [read_until(run, "[toy/b] waiting in process") for run in runs]
    gate.unlink()
    for run in runs:
        rest, _ = run.communicate(timeout=480)
        assert run.returncode == 0, rest
    assert sorted(name.split("-")[0] for name in calls(prefix)) == ["a", "b", "c"]
    jobs = {job_of(text, "toy/b") for text in shown}
    assert len(jobs) == 1, jobs


@pytest.mark.long
def test_a_redeployment_leaves_the_job_and_says_how_to_come_back(
    prefix: Path, env: dict[str, str], gate: Path, tmp_path: Path, own_job: bool
) -> None:
    script = write_experiment(
        tmp_path, gate, source=ONE_STEP, own_job=own_job
    )  # each further job costs 10 s beside other load
    run = start_run(script, env)
    worker = worker_of(wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the step"))
    os.kill(run.pid, signal.SIGTERM)
    output, _ = run.communicate(timeout=480)
    assert "this run detaches from toy/b, and the cluster keeps computing" in output
    job = job_of(output, "toy/b")
    assert f"`marin cluster logs {job}`" in output
    assert f"`marin cluster stop-job {job}`" in output
    assert "Traceback" not in output
    assert alive(worker)
    gate.unlink()
    [status] = prefix.glob("toy/b-*/.executor_status")
    wait_until(lambda: status.read_text() == "SUCCESS", "the job to end by itself")
    again = start_run(script, env)
    output, _ = again.communicate(timeout=480)
    assert "0 computed, 1 reused, 0 failed" in output


@pytest.mark.long
@pytest.mark.parametrize("fn", ["wait_with_a_child", "ignore_being_told_to_stop"])
def test_ctrl_c_in_the_script_ends_the_job_and_all_that_it_started(
    fn: str, write: Callable[[str], Path], prefix: Path, env: dict[str, str], own_job: bool
) -> None:
    run = start_run(write(fn), env)
    text = wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the second step")
    worker = worker_of(text)
    child = int(text.split("child ")[1].split()[0])
    os.killpg(run.pid, signal.SIGINT)
    gone = lambda: not alive(child) and not (own_job and alive(worker))  # noqa: E731
    wait_until(gone, "what the step started to be gone", timeout_s=5)
    [status] = prefix.glob("toy/b-*/.executor_status")
    wait_until(lambda: status.read_text() == "FAILED", "the stop to be recorded", timeout_s=5)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 130
    assert "Traceback" not in output
