"""A dashboard, a head or a network that is away for a while: it is waited for, and nothing is computed twice for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_runs import ONE_STEP, env_for, job_of, read_until, start_run, worker_of, write_experiment
from flaky_proxy import FlakyProxy
from ray_cluster import Cluster
from redis_server import REDIS, redis_server
from running import alive, logged, wait_until
from toy_steps import calls


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FlakyProxy]:
    with FlakyProxy(cluster.address) as proxy:
        yield proxy


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    gate = tmp_path / "gate"
    gate.touch()
    return gate


def made(prefix: Path) -> list[str]:
    return [name.split("-")[0] for name in calls(prefix)]


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(lambda proxy: proxy.cut(), id="the network is cut", marks=pytest.mark.long),
        pytest.param(lambda proxy: proxy.fail(502), id="a gateway says so", marks=pytest.mark.long),
        pytest.param(lambda proxy: proxy.freeze(), id="nothing answers", marks=pytest.mark.long),
    ],
)
def test_a_job_that_ends_meanwhile_is_seen_to_have_ended(
    away: Callable[[FlakyProxy], None],
    proxy: FlakyProxy,
    cluster: Cluster,
    prefix: Path,
    dagster_home: Path,
    tmp_path: Path,
    gate: Path,
) -> None:
    run = start_run(write_experiment(tmp_path, gate), env_for(prefix, dagster_home, cluster, address=proxy.address))
    worker = worker_of(wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the second step"))
    away(proxy)
    shown = read_until(run, "does not answer")
    gate.unlink()
    wait_until(lambda: not os.path.exists(f"/proc/{worker}"), "the job to end")
    proxy.mend()
    rest, _ = run.communicate(timeout=480)
    assert run.returncode == 0, shown + rest
    assert made(prefix) == ["a", "b", "c"]


@pytest.mark.long
def test_a_head_that_comes_back_without_its_jobs_is_distinguished_from_one_that_is_slow(
    prefix: Path, dagster_home: Path, tmp_path: Path, gate: Path
) -> None:
    with Cluster(cpus=2) as cluster:
        run = start_run(write_experiment(tmp_path, gate), env_for(prefix, dagster_home, cluster))
        wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the second step")
        cluster.freeze_dashboard()
        shown = read_until(run, "does not answer")
        cluster.thaw()
        shown += read_until(run, "answers again")
        assert made(prefix) == ["a", "b"]
        cluster.kill_head()
        shown += read_until(run, "does not answer")
        cluster.restart_head()
        shown += read_until(run, "came back without the cluster job")
        wait_until(lambda: made(prefix) == ["a", "b", "b"], "the step to begin again")
        gate.unlink()
        rest, _ = run.communicate(timeout=480)
        assert run.returncode == 0, shown + rest
        assert made(prefix) == ["a", "b", "b", "c"]


@pytest.mark.long
@pytest.mark.skipif(REDIS is None, reason="A head that keeps its jobs needs Redis: apt install redis-server")
def test_a_head_whose_state_is_in_redis_keeps_its_jobs_when_it_is_killed(
    prefix: Path, dagster_home: Path, tmp_path: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs run on another node, as on a real cluster: nothing is computed again, and no attempt is used up."""
    with redis_server(tmp_path) as address:
        monkeypatch.setenv("RAY_REDIS_ADDRESS", address)
        with Cluster(cpus=0) as cluster:
            cluster.add_node(cpus=2)
            run = start_run(write_experiment(tmp_path, gate), env_for(prefix, dagster_home, cluster))
            worker = worker_of(wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the second step"))
            cluster.kill_head()
            shown = read_until(run, "does not answer")
            assert alive(worker)
            cluster.restart_head()
            shown += read_until(run, "answers again")
            assert alive(worker)
            gate.unlink()
            rest, _ = run.communicate(timeout=480)
            assert run.returncode == 0, shown + rest
            assert made(prefix) == ["a", "b", "c"]
            [mark] = prefix.glob("toy/b-*/.marin/attempts/*.json")
            assert mark.name == "1.json"


@pytest.mark.long
def test_a_run_that_detaches_before_the_cluster_answers_leaves_the_job(
    proxy: FlakyProxy,
    cluster: Cluster,
    prefix: Path,
    dagster_home: Path,
    tmp_path: Path,
    gate: Path,
) -> None:
    proxy.hold_answer_to(b"POST /api/jobs")
    script = write_experiment(tmp_path, gate, source=ONE_STEP)
    run = start_run(script, env_for(prefix, dagster_home, cluster, address=proxy.address))
    worker = worker_of(wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the step"))
    os.kill(run.pid, signal.SIGTERM)
    output, _ = run.communicate(timeout=480)
    assert f"`marin cluster logs {job_of(output, 'toy/b')}`" in output
    assert "Traceback" not in output
    assert alive(worker)
    gate.unlink()
    [status] = prefix.glob("toy/b-*/.executor_status")
    wait_until(lambda: status.read_text() == "SUCCESS", "the job to end by itself")


@pytest.mark.long
def test_a_wrong_token_is_one_sentence(
    prefix: Path, dagster_home: Path, tmp_path: Path, gate: Path, cluster: Cluster
) -> None:
    gate.unlink()
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    wrong.chmod(0o600)
    env = {**env_for(prefix, dagster_home, cluster), "RAY_AUTH_TOKEN_PATH": str(wrong)}
    run = start_run(write_experiment(tmp_path, gate), env)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 1
    assert "RAY_AUTH_TOKEN_PATH" in output
    assert "Traceback" not in output
    assert "0" * 64 not in output
