"""A step on a slice goes on when its run is killed, and a stop of the next run releases the slice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_runs import env_for, read_until, start_run, write_experiment
from placement_groups import await_release, placement_groups
from ray_cluster import Cluster
from running import alive, logged, wait_until
from toy_steps import calls

KIND = "v4-16"
ON_A_SLICE = """
import dataclasses, sys
sys.path.insert(0, {tests!r})
import toy_steps
from marin_assets import executor_main, tpu

step = toy_steps.toy("b", toy_steps.{fn}, gate={gate!r}, own_job={own_job})
executor_main([dataclasses.replace(step, resources=tpu("v4-16"))])
"""


@pytest.fixture
def with_a_slice() -> Iterator[Cluster]:
    with Cluster(cpus=2) as cluster:
        cluster.add_slice(KIND, "a")
        yield cluster


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_step_on_a_slice_outlives_its_run_and_a_stop_of_the_next_one_releases_the_slice(
    with_a_slice: Cluster, prefix: Path, dagster_home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    script = write_experiment(tmp_path, gate, source=ON_A_SLICE)
    env = env_for(prefix, dagster_home, with_a_slice)
    first = start_run(script, env)
    text = logged(prefix, "toy/b", "waiting in process")
    hosts = wait_until(lambda: found if len(found := processes(text())) == 2 else None, "both hosts", 300)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = start_run(script, env)
    read_until(second, "attached to cluster job")
    assert all(map(alive, hosts))
    assert len(placement_groups(with_a_slice)) == 1
    os.killpg(second.pid, signal.SIGINT)
    second.communicate(timeout=480)
    assert second.returncode == 130
    await_release(with_a_slice)
    wait_until(lambda: not any(map(alive, hosts)), "the end of the hosts' processes", 60)

    gate.unlink()
    third = start_run(script, env)
    output, _ = third.communicate(timeout=480)
    assert "1 computed, 0 reused, 0 failed" in output
    assert len(calls(prefix)) == 4
    await_release(with_a_slice)


def processes(log: str | None) -> list[int]:
    """The processes of the hosts that wait."""
    return [int(line.split()[-1]) for line in (log or "").splitlines() if "waiting in process" in line]
