"""Small steps share one job of a real cluster, and everything that holds of a job of its own holds of each of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import small_steps
import toy_steps
from orchestrator import Orchestrator, note_of
from ray_cluster import Cluster
from running import alive, logged, wait_until
from toy_steps import calls

from marin_assets import Step
from marin_assets.cli.verbs.cluster.support.batch_steps import find_step, list_with_steps, stop_step
from marin_resources.orchestrator.produce import Produced, ProduceError
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi, JobStatus, connect
from marin_resources.ray_tpu.cluster.batch_jobs.batch_jobs import Outbox
from marin_resources.storage.output.notes.job_notes import BatchJob
from marin_resources.storage.output.status import Status, read_status

T = TypeVar("T")
toy = partial(toy_steps.toy, own_job=False)
"""Small, also the first and alone."""


@pytest.fixture
def orchestrator(prefix: Path, cluster: Cluster) -> Orchestrator:
    return Orchestrator(prefix, cluster)


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[list[Path]]:
    gates = [tmp_path / f"gate-{n}" for n in range(2)]
    for gate in gates:
        gate.touch()
    yield gates
    for gate in gates:
        gate.unlink(missing_ok=True)


def waits(name: str, gate: Path, **fields: Any) -> Step:
    return toy(name, toy_steps.wait_at_gate, gate=str(gate), **fields)


async def begun(prefix: Path, *names: str) -> list[int]:
    """The workers of steps, once their functions wait at their gates."""
    found = [await asyncio.to_thread(wait_until, logged(prefix, name, "waiting in process"), name) for name in names]
    return [int(text.split("waiting in process ")[1].split()[0]) for text in found]


def path_of(prefix: Path, name: str) -> str:
    [path] = prefix.glob(f"{name}-*")
    return str(path)


def batch_job_of(prefix: Path, name: str) -> BatchJob:
    return small_steps.batch_job_of(path_of(prefix, name))


def ask(orchestrator: Orchestrator, what: Callable[[JobsApi], Awaitable[T]]) -> T:
    async def answer() -> T:
        async with connect(orchestrator.settings) as api:
            return await what(api)

    return asyncio.run(answer())


async def cancel(making: asyncio.Task[Any]) -> None:
    making.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await making


def test_steps_of_a_run_share_a_job_that_ends_with_the_run_and_each_has_its_log(
    orchestrator: Orchestrator, prefix: Path
) -> None:
    async def produce_all() -> list[Produced]:
        with orchestrator.backend() as backend:
            steps = [toy(f"s{n}", toy_steps.say, note=f"I am {n}") for n in range(5)]
            return await asyncio.gather(*(orchestrator.produce_with(backend, step) for step in steps))

    produced = asyncio.run(produce_all())
    [batch_job] = {batch_job_of(prefix, f"toy/s{n}") for n in range(5)}
    for number, each in enumerate(produced):
        assert Path(each.observed.path, ".marin/attempts/1.log").read_text() == f"I am {number}\n"
        assert each.observed.record.to_dict()["job"]["carrier"] == batch_job.job
    assert sorted(orchestrator.log) == [f"I am {n}" for n in range(5)]
    job = ask(orchestrator, lambda api: api.info(batch_job.job))
    assert job.metadata["marin/run_id"] == "run-1"
    wait_until(
        lambda: ask(orchestrator, lambda api: api.info(batch_job.job)).status is JobStatus.SUCCEEDED,
        "the batch job to end",
    )
    assert not Path(batch_job.task_queue).exists()


@pytest.mark.long
def test_one_is_listed_shown_and_stopped_by_its_own_id_and_the_other_goes_on(
    orchestrator: Orchestrator, prefix: Path, gates: list[Path]
) -> None:
    async def act() -> tuple[Produced, BaseException]:
        with orchestrator.backend() as backend:
            first = asyncio.create_task(orchestrator.produce_with(backend, waits("first", gates[0])))
            second = asyncio.create_task(orchestrator.produce_with(backend, waits("second", gates[1])))
            await begun(prefix, "toy/first", "toy/second")
            note = note_of(path_of(prefix, "toy/first"))
            async with connect(orchestrator.settings) as api:
                await until_listed(api, note.submission_id)
                step = await find_step(api, note.submission_id)
                assert step is not None
                async with asyncio.timeout(5):
                    twice = [stop_step(step, "ann@laptop", "wrong data") for _ in range(2)]
                    assert await asyncio.gather(*twice) == [True, True]
            [stopped] = await asyncio.gather(first, return_exceptions=True)
            assert not second.done()
            gates[1].unlink()
            return await second, stopped  # type: ignore[return-value]

    produced, stopped = asyncio.run(act())
    assert produced.observed.done
    assert isinstance(stopped, ProduceError)
    assert "was stopped by ann@laptop: wrong data" in str(stopped)
    assert read_status(path_of(prefix, "toy/first")) is Status.FAILED
    assert len(calls(prefix)) == 2


async def until_listed(api: JobsApi, step_id: str) -> None:
    """Wait until `marin cluster jobs` has the step, as one that runs."""
    async with asyncio.timeout(10):
        while (step_id, JobStatus.RUNNING) not in {
            (job.submission_id, job.status) for job in await list_with_steps(api)
        }:
            await asyncio.sleep(0.1)


@pytest.mark.long
def test_a_batch_job_that_is_killed_takes_its_workers_along_and_each_step_is_published_once(
    orchestrator: Orchestrator, prefix: Path, gates: list[Path]
) -> None:
    async def act() -> tuple[Produced, int]:
        with orchestrator.backend() as backend:
            making = asyncio.create_task(orchestrator.produce_with(backend, waits("a", gates[0])))
            [worker] = await begun(prefix, "toy/a")
            small_steps.process_of(batch_job_of(prefix, "toy/a")).kill()
            await asyncio.to_thread(wait_until, lambda: not alive(worker), "the worker to be gone")
            await asyncio.to_thread(wait_until, lambda: len(calls(prefix)) == 2, "the next attempt", 120)
            gates[0].unlink()
            return await making, worker

    produced, _ = asyncio.run(act())
    assert produced.lost_workers == 1
    assert produced.observed.record.attempt == 2
    assert note_of(produced.observed.path, 1).batch_job != note_of(produced.observed.path, 2).batch_job


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_and_another_step_of_the_batch_job_goes_on(
    orchestrator: Orchestrator, prefix: Path, gates: list[Path]
) -> None:
    async def act() -> list[Produced]:
        with orchestrator.backend() as backend:
            first = asyncio.create_task(orchestrator.produce_with(backend, waits("first", gates[0])))
            second = asyncio.create_task(orchestrator.produce_with(backend, waits("second", gates[1])))
            worker, other = await begun(prefix, "toy/first", "toy/second")
            assert worker != other
            os.kill(worker, signal.SIGKILL)
            await asyncio.to_thread(wait_until, lambda: len(calls(prefix)) == 3, "the next attempt", 120)
            assert alive(other)
            for gate in gates:
                gate.unlink()
            return [await first, await second]

    first, second = asyncio.run(act())
    assert (first.lost_workers, second.lost_workers) == (1, 0)


@pytest.mark.long
def test_a_step_whose_run_died_before_it_was_posted_is_posted_by_the_next(
    orchestrator: Orchestrator, prefix: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never_posted(outbox: Outbox, note_path: str) -> None:
        raise RuntimeError("the run is killed here")

    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "run", never_posted)
        patched.setattr(Outbox, "end", lambda outbox: None)
        with pytest.raises(RuntimeError, match="killed here"):
            orchestrator.produce(toy("a"))
    produced = Orchestrator(prefix, cluster, run_id="run-2").produce(toy("a"))
    assert produced.observed.record.attempt == 1
    assert len(calls(prefix)) == 1


@pytest.mark.long
def test_a_step_for_which_no_place_is_free_says_so_and_waits_for_it(
    orchestrator: Orchestrator, prefix: Path, gates: list[Path]
) -> None:
    async def act() -> Produced:
        with orchestrator.backend() as backend:
            running = [
                asyncio.create_task(orchestrator.produce_with(backend, waits(name, gates[0]))) for name in ("x", "y")
            ]
            await begun(prefix, "toy/x", "toy/y")
            waiting = asyncio.create_task(orchestrator.produce_with(backend, toy("z")))
            words = "toy/z: it waits for 1 CPU since "
            await asyncio.to_thread(wait_until, lambda: [s for s in orchestrator.said if s.startswith(words)], words)
            gates[0].unlink()
            await asyncio.gather(*running)
            return await waiting

    assert asyncio.run(act()).observed.done
    [waits_for] = [said for said in orchestrator.said if "toy/z: it waits" in said]
    # other tests leave jobs that no node can hold
    assert re.search(r"the cluster is busy, place (\d+) of \1 in the queue; \d+ jobs run, of ", waits_for)


@pytest.mark.long
def test_a_run_that_is_terminated_stops_its_steps_within_5_s_also_one_that_has_not_begun(
    orchestrator: Orchestrator, prefix: Path, gates: list[Path]
) -> None:
    async def act() -> list[int]:
        with orchestrator.backend() as backend:
            steps = [waits(name, gates[0]) for name in ("x", "y", "z")]
            making = [asyncio.create_task(orchestrator.produce_with(backend, step)) for step in steps]
            await asyncio.to_thread(wait_until, lambda: len(calls(prefix)) == 2, "two of them")
            async with asyncio.timeout(5):
                await asyncio.gather(*map(cancel, making))
            return [len(calls(prefix))]

    assert asyncio.run(act()) == [2]
    ended = [note_of(path).stop is not None for path in map(str, prefix.glob("toy/*"))]
    assert ended == [True] * 3


@pytest.mark.long
def test_the_first_small_step_is_a_job_of_its_own_unless_others_come_with_it(
    orchestrator: Orchestrator, prefix: Path
) -> None:
    """It begins in half the time that a batch job takes to start."""

    async def one_then_two_then_three() -> None:
        with orchestrator.backend() as backend:
            for names in (["one"], ["two"], ["three", "four"]):
                steps = [toy_steps.toy(name) for name in names]
                await asyncio.gather(*(orchestrator.produce_with(backend, step) for step in steps))

    async def two_at_once() -> None:
        with orchestrator.backend() as backend:
            steps = [toy_steps.toy(name) for name in ("five", "six")]
            await asyncio.gather(*(orchestrator.produce_with(backend, step) for step in steps))

    asyncio.run(one_then_two_then_three())
    asyncio.run(two_at_once())
    batched = {
        path.name.partition("-")[0]: note_of(str(path)).batch_job is not None for path in (prefix / "toy").iterdir()
    }
    assert batched == {"one": False, "two": True, "three": True, "four": True, "five": True, "six": True}
