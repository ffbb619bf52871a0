"""What runs and waits: steps in place of their batch jobs, and a job without its device yet as one that waits."""

from __future__ import annotations

import asyncio

import one_output
import pytest

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.batch_jobs.queue import Queue
from marin_resources.ray_tpu.cluster.batch_jobs.steps import BATCH_JOB, NAME, write_steps
from marin_resources.ray_tpu.cluster.monitor import shared_read
from marin_resources.ray_tpu.cluster.monitor.start_watch import describe_queue
from marin_resources.storage.control import control
from marin_resources.storage.output.store import Store

X = one_output.X


def job(name: str, output: str, **metadata: str) -> JobInfo:
    return JobInfo(
        submission_id=name,
        status=JobStatus.RUNNING,
        message="",
        error_type=None,
        exit_code=None,
        submitted_at_s=None,
        ended_at_s=None,
        metadata={"marin/output": output, "marin/attempt": "1", **metadata},
        entrypoint="x",
        node_id=None,
    )


def test_a_job_whose_worker_has_claimed_nothing_waits_for_its_device(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    on_device = {"marin/device": "1 CPU, 1 GPU"}
    jobs = [
        job("of cpus", f"{disk_prefix}/raw/y-000000"),
        job("waits", f"{disk_prefix}/raw/z-000000", **on_device),
        job("runs", store.locate(X), **on_device),
        job("elsewhere", "gs://no-such-place-at-all/x", **on_device, **{"marin/attempt": "one"}),
    ]
    one_output.make(store, X)

    async def listed() -> list[JobInfo]:
        return jobs

    found = asyncio.run(Queue(listed).jobs("waits"))
    assert [each.submission_id for each in found if each.status is JobStatus.PENDING] == ["waits"]
    assert [each.submission_id for each in found] == [each.submission_id for each in jobs]


@pytest.mark.parametrize("listed", ["steps that have ended", "nothing", "unreadable"])
def test_a_batch_job_at_work_runs_also_when_none_of_its_steps_is_seen_at_work(disk_prefix: str, listed: str) -> None:
    task_queue = f"{disk_prefix}/.marin/carriers/c"
    batch_job = job("c", "x", **{BATCH_JOB: task_queue, "marin/user": "ann"})
    if listed == "unreadable":
        control.put(f"{task_queue}/{NAME}", b"{")
    else:
        notes = [f"{disk_prefix}/toy/{n}/.marin/jobs/1.json" for n in range(300)]
        write_steps(task_queue, notes if listed == "steps that have ended" else [])

    async def there() -> list[JobInfo]:
        return [batch_job]

    said = describe_queue("mine", asyncio.run(Queue(there).jobs("mine")))
    runs = "no job runs" if listed == "nothing" else "1 job runs, of ann (1)"
    assert said.endswith(runs)


def test_the_queue_is_read_again_for_a_job_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, there, reads = 1000.0, [job("first", "x")], 0
    monkeypatch.setattr(shared_read.time, "monotonic", lambda: now_s)

    async def listed() -> list[JobInfo]:
        nonlocal reads
        reads += 1
        return list(there)

    async def act() -> list[int]:
        nonlocal now_s
        asked, seen = Queue(listed), list[int]()
        for name, after_s in (("first", 0.0), ("second", 1.0), ("second", 1.0), ("second", 14.0), ("second", 1.0)):
            now_s += after_s
            await asked.jobs(name)
            seen.append(reads)
            there[1:] = [job("second", "y")]
        return seen

    assert asyncio.run(act()) == [1, 1, 2, 2, 3]
