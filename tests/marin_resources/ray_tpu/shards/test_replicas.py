"""Calls are spread over copies of an object in processes of Ray, and outlive these processes."""

from __future__ import annotations

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
