"""Calls are spread over copies of an object in processes of Ray, and outlive these processes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from copied_object import copied, unopened
from running import alive, wait_until

from marin_resources.hardware.resources import cpu
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, reserve
from marin_resources.ray_tpu.shards.replicas import LOSSES, ReplicaError, Replicas
from marin_resources.types.errors import MarinError


@pytest.fixture(autouse=True)
def in_a_job(shared_ray: None) -> Iterator[None]:
    with reserve(JobAllocation(cpus=1)):
        yield


def replicas(folder: Path, *, count: int = 2, calls_at_once: int = 2) -> Replicas:
    return Replicas(copied, (str(folder),), count=count, resources=cpu(0.5), calls_at_once=calls_at_once)


def pids(folder: Path, event: str) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{event}-*")}


def test_calls_go_to_the_copy_with_the_fewest_and_the_copies_end_with_the_block(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with replicas(tmp_path) as copies, ThreadPoolExecutor(4) as pool:
        wait_until(lambda: len(pids(tmp_path, "opened")) == 2, "both copies to open", 60)
        calls = [pool.submit(copies.call, "pid", str(gate)) for _ in range(4)]
        wait_until(lambda: len(pids(tmp_path, "called")) == 2, "both copies to be called", 60)
        gate.unlink()
        answered = [call.result() for call in calls]
        assert {answered.count(pid) for pid in answered} == {2}
    assert pids(tmp_path, "closed") == set(answered)
    wait_until(lambda: not any(alive(pid) for pid in answered), "the processes to end", 60)


def test_a_copy_with_resources_of_its_own_waits_for_them_and_another_runs_on_those_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import ray

    def hold(gate: str) -> None:
        while os.path.exists(gate):
            time.sleep(0.02)

    monkeypatch.setattr("marin_resources.ray_tpu.shards.replicas.WAITING_EVERY_S", 0.1)
    caplog.set_level(logging.INFO)
    gate = tmp_path / "gate"
    gate.touch()
    held = ray.remote(num_cpus=2, max_retries=0)(hold).remote(str(gate))
    wait_until(lambda: not ray.available_resources().get("CPU"), "all CPUs to be taken", 60)
    with replicas(tmp_path, count=1) as copies:
        assert copies.call("pid", "no gate")
    own = Replicas(copied, (str(tmp_path / "no"),), count=1, resources=cpu(1), calls_at_once=1, uses_allocation=False)
    (tmp_path / "no").mkdir()
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(own.__enter__)
        wait_until(lambda: "0 are, each wants 1 CPU" in caplog.text, "a line about the wait", 60)
        assert pids(tmp_path / "no", "opened") == set()
        gate.unlink()
        opening.result()
    own.__exit__(None, None, None)
    ray.get(held)


def test_a_call_outlives_its_process(tmp_path: Path) -> None:
    with replicas(tmp_path) as copies:
        pid = copies.call("die", 2)
        assert len(pids(tmp_path, "died")) == 2
        assert pid not in pids(tmp_path, "died")
        assert copies.call("pid", str(tmp_path / "no-gate"))


def test_a_call_that_ends_every_process_is_an_error_at_last(tmp_path: Path) -> None:
    with replicas(tmp_path, count=1) as copies, pytest.raises(ReplicaError, match=f"lost {LOSSES + 1} times"):
        copies.call("die", 100)


def test_errors_are_those_of_the_object(tmp_path: Path) -> None:
    with replicas(tmp_path, count=1) as copies, pytest.raises(MarinError, match=r"^The value is 'x'\.$"):
        copies.call("refuse", "x")
    failing = Replicas(unopened, (str(tmp_path),), count=2, resources=cpu(0.5), calls_at_once=1)
    with pytest.raises(MarinError, match=r"^The copy has no model\.$"), failing:
        pytest.fail("it opened")
