"""The steps that batch jobs run, for the verbs of `marin cluster`: listed, found and stopped like jobs of their own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from marin_assets.run.output import print_line

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi
    from marin_resources.ray_tpu.cluster.batch_jobs.steps import BatchStep

POLL_S = 0.2
STOP_TIMEOUT_S = 10.0


async def list_with_steps(api: JobsApi) -> list[JobInfo]:
    """The jobs of the cluster, and the unfinished steps of its batch jobs as if each were a job."""
    from marin_resources.ray_tpu.cluster.batch_jobs.steps import steps_of

    jobs = await api.list()
    return [*jobs, *(step.as_job() for step in await steps_of(jobs))]


async def find_step(api: JobsApi, step_id: str) -> BatchStep | None:
    """The unfinished step of this id; None if no batch job has it."""
    from marin_resources.ray_tpu.cluster.batch_jobs import steps

    return await steps.find_step(await api.list(), step_id)


async def show_log(step: BatchStep, *, follow: bool) -> None:
    """Print the log of the step's attempt so far; with `follow`, also new lines until the step has ended."""
    from marin_resources.ray_tpu.log.attempt_log import LogFollower
    from marin_resources.storage.output.attempts import log_path
    from marin_resources.storage.output.notes.job_notes import is_closed

    follower = LogFollower(log_path(step.note.task.path, step.note.attempt), print_line)
    while follow and not await asyncio.to_thread(is_closed, step.note_path):
        await asyncio.to_thread(follower.poll)
        await asyncio.sleep(POLL_S)
    await asyncio.to_thread(follower.finish)


async def stop_step(step: BatchStep, by: str, reason: str) -> bool:
    """Stop the step; return whether it has ended within 10 s."""
    from marin_resources.storage.output.notes.job_notes import add_stop, is_closed

    await asyncio.to_thread(add_stop, step.note_path, by, reason)
    await _request_stop(step)
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            while not await asyncio.to_thread(is_closed, step.note_path):
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        return False
    return True


async def note_stops(info: JobInfo, by: str, reason: str) -> None:
    """Write the stop into the notes of all unfinished steps of a batch job that is about to be stopped."""
    from marin_resources.ray_tpu.cluster.batch_jobs.steps import steps_of
    from marin_resources.storage.output.notes.job_notes import add_stop

    for step in await steps_of([info]):
        await asyncio.to_thread(add_stop, step.note_path, by, reason)


async def _request_stop(step: BatchStep) -> None:
    from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import Message, TaskQueue, TaskQueueClosedError

    assert step.note.batch_job is not None
    task_queue = TaskQueue(step.note.batch_job.task_queue)
    with suppress(TaskQueueClosedError):  # the batch job has ended, and its steps with it
        await asyncio.to_thread(task_queue.post, Message(stop=(step.note_path,)))
