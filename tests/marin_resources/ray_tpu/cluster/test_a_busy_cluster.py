"""A step that waits for a place has not failed, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_steps
from orchestrator import Orchestrator, note_of
from ray_cluster import Cluster
from running import logged, wait_until
from toy_steps import calls, toy

from marin_assets import cpu


@pytest.mark.long
def test_six_steps_that_each_fill_the_node_are_all_made_though_each_may_wait_2_s_for_a_node(
    prefix: Path, cluster: Cluster
) -> None:
    orchestrator = Orchestrator(prefix, cluster, start_timeout_s=2.0)

    async def produce_all() -> None:
        with orchestrator.backend() as backend:
            steps = [toy(f"s{n}", own_job=True, resources=cpu(2)) for n in range(6)]
            await asyncio.gather(*(orchestrator.produce_with(backend, step) for step in steps))

    asyncio.run(produce_all())
    assert len(calls(prefix)) == 6
    waits = [said for said in orchestrator.said if "it waits for 2 CPU since" in said]
    assert waits
    assert all("the cluster is busy, place " in said for said in waits)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster whose Ray ends a job that has waited for 3 s."""
    monkeypatch.setenv("RAY_JOB_START_TIMEOUT_SECONDS", "3")
    with Cluster(cpus=1) as cluster:
        yield cluster


@pytest.mark.long
def test_a_job_that_ray_gives_up_is_submitted_again_until_it_begins(
    prefix: Path, impatient: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    orchestrator = Orchestrator(prefix, impatient)

    async def act() -> int:
        with orchestrator.backend() as backend:
            holder = toy("holder", toy_steps.wait_at_gate, gate=str(gate), own_job=True)
            holding = asyncio.create_task(orchestrator.produce_with(backend, holder))
            await asyncio.to_thread(wait_until, logged(prefix, "toy/holder", "waiting in process"), "the holder")
            waiting = asyncio.create_task(orchestrator.produce_with(backend, toy("next", own_job=True)))
            again = "as long as Ray lets a job wait; submitting it again"
            await asyncio.to_thread(wait_until, lambda: sum(again in said for said in orchestrator.said) >= 2, again)
            gate.unlink()
            await holding
            produced = await waiting
            assert note_of(produced.observed.path, 1).ended
            return produced.lost_workers

    assert asyncio.run(act()) == 0
    assert len(calls(prefix)) == 2
