"""Small steps whose outputs, notes and task queue are in a bucket: batch job and workers share no disk with the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bucket_dag import NAMES, build, calls, value_at
from orchestrator import Orchestrator, note_of
from our_words import OURS
from ray_cluster import Cluster
from running import wait_until
from small_steps import batch_job_of, process_of

from marin_resources.orchestrator.produce import Produced
from marin_resources.storage.filesystems.filesystem import filesystem_of


@pytest.mark.long
def test_a_chain_is_made_by_one_batch_job_and_goes_on_after_its_death(
    gcs_prefix: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_LEASE_TTL_S", "10")
    gate = tmp_path / "gate"
    gate.touch()
    orchestrator = Orchestrator(gcs_prefix, cluster)
    steps = build(OURS, {NAMES[2]: str(gate)})

    async def act() -> list[Produced]:
        with orchestrator.backend() as backend:
            made = [await orchestrator.produce_with(backend, steps[name]) for name in NAMES[:2]]
            making = asyncio.create_task(orchestrator.produce_with(backend, steps[NAMES[2]]))
            begun = lambda: calls(gcs_prefix, "us").count(NAMES[2])  # noqa: E731
            await asyncio.to_thread(wait_until, begun, "the third step")
            process_of(batch_job_of(made[1].observed.path)).kill()
            await asyncio.to_thread(wait_until, lambda: begun() == 2, "its next attempt", 120)
            gate.unlink()
            return [*made, await making, await orchestrator.produce_with(backend, steps[NAMES[3]])]

    made = asyncio.run(act())
    assert [each.lost_workers for each in made] == [0, 0, 1, 0]
    assert value_at(made[-1].observed.path) == {"value": 10, "by": "us"}
    paths = [each.observed.path for each in made]
    assert note_of(paths[0]).batch_job is None  # it came alone, so it was a job of its own
    assert batch_job_of(paths[1]) == batch_job_of(paths[2]) != batch_job_of(paths[3])
    assert batch_job_of(paths[2], 2) == batch_job_of(paths[3])
    fs, task_queue = filesystem_of(batch_job_of(paths[3]).task_queue)
    wait_until(lambda: not fs.exists(task_queue), "the batch job to end")
