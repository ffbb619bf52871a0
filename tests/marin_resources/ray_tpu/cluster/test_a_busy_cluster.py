"""A step that waits for a place has not failed, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_steps
from orchestrator import Orchestrator, note_of
from ray_autoscaler import autoscaled, complaints
from ray_cluster import Cluster
from running import logged, wait_until
from toy_steps import calls, toy

from marin_assets import cpu, tpu
from marin_resources.orchestrator.produce import Produced
from marin_resources.storage.output.notes import job_notes

COMPLAINT = "No available node types can fulfill resource request"


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


@pytest.mark.long
def test_a_job_that_another_run_has_given_up_says_so_and_is_no_lost_worker(
    prefix: Path, cluster: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    orchestrator = Orchestrator(prefix, cluster)

    async def act() -> Produced:
        with orchestrator.backend() as backend:
            holder = toy("holder", toy_steps.wait_at_gate, gate=str(gate), own_job=True, resources=cpu(2))
            holding = asyncio.create_task(orchestrator.produce_with(backend, holder))
            await asyncio.to_thread(wait_until, logged(prefix, "toy/holder", "waiting in process"), "the holder")
            waiting = asyncio.create_task(orchestrator.produce_with(backend, toy("next", own_job=True)))
            words = "toy/next: it waits for 1 CPU since "
            await asyncio.to_thread(wait_until, lambda: any(words in said for said in orchestrator.said), words)
            [path] = prefix.glob("toy/next-*")
            job_notes.add_ended(job_notes.note_path(str(path), 1), "was never submitted")
            gate.unlink()
            await holding
            return await waiting

    produced = asyncio.run(act())
    assert produced.lost_workers == 0
    assert produced.observed.record.attempt == 2
    assert [name.split("-")[0] for name in calls(prefix)] == ["holder", "next"]
    [said] = [said for said in orchestrator.said if "began too late" in said]
    assert "did nothing: was never submitted; submitting it again" in said


@pytest.mark.long
def test_a_step_that_waits_for_a_device_has_a_place_in_the_queue(prefix: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()

    async def act(orchestrator: Orchestrator) -> None:
        with orchestrator.backend() as backend:
            holder = toy("holder", toy_steps.wait_at_gate, gate=str(gate), resources=tpu("v4-8"))
            holding = asyncio.create_task(orchestrator.produce_with(backend, holder))
            await asyncio.to_thread(wait_until, logged(prefix, "toy/holder", "waiting in process"), "the holder")
            waiting = asyncio.create_task(orchestrator.produce_with(backend, toy("next", resources=tpu("v4-8"))))
            words = "toy/next: it waits for 1 CPU, 1 slice(s) of TPU v4-8 since "
            busy = "the cluster is busy, place 1 of 1 in the queue; 1 job runs, of "
            reported = lambda: any(words in said and busy in said for said in orchestrator.said)  # noqa: E731
            await asyncio.to_thread(wait_until, reported, words, timeout_s=240)  # two jobs start before that
            gate.unlink()
            await asyncio.gather(holding, waiting)

    with Cluster(cpus=2) as cluster:
        cluster.add_node({"TPU-v4-8-head": 1, "TPU": 4}, cpus=1)
        asyncio.run(act(Orchestrator(prefix, cluster)))
    assert [name.split("-")[0] for name in calls(prefix)] == ["holder", "next"]


@pytest.fixture(scope="module")
def growing() -> Iterator[Cluster]:
    """A cluster of one CPU, to which Ray's autoscaler may add a node of four."""
    with autoscaled({"CPU": 4}) as cluster:
        yield cluster


@pytest.mark.long
def test_what_no_node_can_hold_is_no_noise_in_the_logs_of_others(
    prefix: Path, growing: Cluster, tmp_path: Path
) -> None:
    """Ray's autoscaler complains of it to every process that has connected to the cluster."""
    gate = tmp_path / "gate"
    gate.touch()
    orchestrator = Orchestrator(prefix, growing)

    async def act() -> Produced:
        with orchestrator.backend() as backend:
            other = toy("other", toy_steps.wait_connected_at_gate, gate=str(gate), own_job=True)
            making = asyncio.create_task(orchestrator.produce_with(backend, other))
            await asyncio.to_thread(wait_until, logged(prefix, "toy/other", "waiting in process"), "the other")
            unmeetable = toy("unmeetable", own_job=True, resources=cpu(64))
            waiting = asyncio.create_task(orchestrator.produce_with(backend, unmeetable))
            complains = lambda: COMPLAINT in complaints(growing)  # noqa: E731
            await asyncio.to_thread(wait_until, complains, "the autoscaler's complaint")
            [log] = prefix.glob("toy/other-*/.marin/attempts/1.log")
            said = log.read_text().count("still connected")
            later = lambda: log.read_text().count("still connected") > said + 2  # noqa: E731
            await asyncio.to_thread(wait_until, later, "the next lines of the other")
            waiting.cancel()
            gate.unlink()
            return await making

    produced = asyncio.run(act())
    assert COMPLAINT not in Path(produced.observed.path, ".marin/attempts/1.log").read_text()


@pytest.mark.long
def test_a_step_waits_for_a_node_that_the_autoscaler_may_add(prefix: Path, growing: Cluster) -> None:
    orchestrator = Orchestrator(prefix, growing, start_timeout_s=0.2, node_types=({"CPU": 4.0},))
    produced = orchestrator.produce(toy("a", own_job=True, resources=cpu(3)))
    assert produced.observed.done
    assert "no node has what it asks for" in orchestrator.failure(toy("b", own_job=True, resources=cpu(5))).args[0]
