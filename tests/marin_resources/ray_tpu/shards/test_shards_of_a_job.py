"""Shards of a step that reserves CPUs while it waits for them, as a job on a cluster does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shard_steps
from running import wait_until
from shard_steps import MarkedShard, numbers_told

from marin_resources.hardware.resources import cpu, gpu
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, current_allocation, reserve
from marin_resources.ray_tpu.shards.map_shards import ShardError, map_shards


@pytest.fixture
def told(tmp_path: Path) -> Path:
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


@pytest.fixture
def no_cpu_is_free(shared_ray: None, tmp_path: Path) -> Iterator[None]:
    """Others hold all CPUs of the shared Ray while the test runs."""
    import ray

    def sit(told: str, gate: str) -> None:
        Path(told).touch()
        while not os.path.exists(gate):
            time.sleep(0.02)

    seats = [str(tmp_path / f"seat-{number}") for number in range(2)]
    gate = tmp_path / "leave"
    sitting = [ray.remote(max_retries=0)(sit).remote(seat, str(gate)) for seat in seats]
    wait_until(lambda: all(map(os.path.exists, seats)), "all CPUs to be taken")
    yield
    gate.touch()
    ray.get(sitting)


def shards(told: Path, count: int, **how: Any) -> list[MarkedShard]:
    return [MarkedShard(number=number, told=str(told), **how) for number in range(count)]


def test_a_step_that_is_not_a_job_reserves_nothing() -> None:
    assert current_allocation() is None


def test_a_process_has_an_allocation_for_one_step_at_a_time() -> None:
    allocation = JobAllocation(cpus=2, memory_bytes=1000)
    with reserve(allocation):
        assert current_allocation() == allocation
        with pytest.raises(RuntimeError, match="Run one step at a time"), reserve(JobAllocation(cpus=1)):
            pass
    assert current_allocation() is None


@pytest.mark.parametrize(
    ("cpus", "memory_gib", "slots"), [(1, None, 4), (3, None, 1), (8, None, 1), (1, 1, 2), (1, 4, 1)]
)
def test_an_allocation_has_slots_for_so_many_shards(cpus: float, memory_gib: float | None, slots: int) -> None:
    assert JobAllocation(cpus=4, memory_bytes=2 * 1024**3).slots(cpu(cpus, memory_gib=memory_gib)) == slots


def test_a_task_of_ray_has_no_slots_as_its_cpus_are_lent_while_it_waits() -> None:
    assert JobAllocation(cpus=4, lent_while_waiting=True).slots(cpu(1)) == 0


def test_all_shards_are_done_though_no_cpu_ever_becomes_free(no_cpu_is_free: None, told: Path, tmp_path: Path) -> None:
    with reserve(JobAllocation(cpus=1)):
        counted = map_shards(shard_steps.mark, shards(told, 6), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 6}
    assert numbers_told(told) == [0, 1, 2, 3, 4, 5]


@pytest.mark.long
def test_a_shard_that_dies_in_a_slot_is_run_again(no_cpu_is_free: None, told: Path, tmp_path: Path) -> None:
    with reserve(JobAllocation(cpus=1)):
        counted = map_shards(shard_steps.die_once, shards(told, 2), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 2}


@pytest.mark.long
def test_shards_that_die_in_a_slot_and_elsewhere_are_run_again(shared_ray: None, told: Path, tmp_path: Path) -> None:
    with reserve(JobAllocation(cpus=1)):
        counted = map_shards(shard_steps.die_once, shards(told, 2, meets=2), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 2}


@pytest.mark.long
def test_shards_use_cpus_beyond_the_allocation(shared_ray: None, told: Path, tmp_path: Path) -> None:
    with reserve(JobAllocation(cpus=1)):
        counted = map_shards(shard_steps.meet, shards(told, 2, meets=2), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 2}


def test_shards_use_the_whole_allocation_at_once(no_cpu_is_free: None, told: Path, tmp_path: Path) -> None:
    with reserve(JobAllocation(cpus=2)):
        counted = map_shards(shard_steps.meet, shards(told, 4, meets=2), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 4}


@pytest.mark.long
@pytest.mark.parametrize("bad", [0, 1])
def test_a_shard_that_fails_in_a_slot_or_elsewhere_names_itself(
    shared_ray: None, told: Path, tmp_path: Path, bad: int
) -> None:
    sentence = rf"Shard {bad} of .*:fail' failed: ValueError: {bad} is bad"
    with reserve(JobAllocation(cpus=1)), pytest.raises(ShardError, match=sentence):
        map_shards(shard_steps.fail, shards(told, 2, meets=2, bad=bad), output_path=str(tmp_path / "out"))


def test_a_single_shard_runs_in_the_jobs_own_process_without_ray(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with reserve(JobAllocation(cpus=2)):
        map_shards(shard_steps.mark, shards(told, 1), output_path=str(tmp_path), resources=cpu(2))
    assert (told / "0").read_text() == str(os.getpid())


@pytest.mark.parametrize("resources", [cpu(2), cpu(1, memory_gib=1), gpu()])
def test_a_single_shard_that_requests_more_than_the_allocation_is_given_to_ray(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resources: Any
) -> None:
    asked: list[Callable[..., Any]] = []
    monkeypatch.setattr("marin_resources.ray_tpu.shards.tasks.run_on_ray", lambda *about: asked.append(about[2]) or [])
    with reserve(JobAllocation(cpus=1)), pytest.raises(KeyError):
        map_shards(shard_steps.mark, shards(told, 1), output_path=str(tmp_path), resources=resources)
    assert asked == [resources]


def test_shards_run_with_the_interpreter_and_import_path_of_their_step(
    shared_ray: None, told: Path, tmp_path: Path
) -> None:
    with reserve(JobAllocation(cpus=1)):
        map_shards(shard_steps.tell_python, shards(told, 2), output_path=str(tmp_path / "out"), resources=cpu(1))
    executable, *paths = (told / "1").read_text().splitlines()
    assert executable == sys.executable
    assert str(Path(shard_steps.__file__).parent) in paths
