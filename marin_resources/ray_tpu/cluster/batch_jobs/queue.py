"""The running and waiting jobs of a cluster, for the reports of steps that wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.batch_jobs.steps import BATCH_JOB, Load, loads_of
from marin_resources.ray_tpu.cluster.monitor.shared_read import SharedRead
from marin_resources.storage.output.attempts import has_begun
from marin_resources.types.versioned_json import ControlFileError

MAX_AGE_S = 15.0
"""All steps of a run that wait share what is read of the queue."""
MAX_AGE_WITHOUT_S = 2.0
"""For a step that is not in it yet."""
log = logging.getLogger(__name__)


class Queue:
    """The jobs of a cluster, with the steps of batch jobs in place of these."""

    def __init__(self, list_jobs: Callable[[], Awaitable[Sequence[JobInfo]]]) -> None:
        self._list_jobs = list_jobs
        self._shared = SharedRead(self._read)

    async def jobs(self, asks: str) -> Sequence[JobInfo]:
        """The queue for the report of the job `asks`, at most 15 s old, and 2 s if it does not have this job.

        A job that has begun and whose step waits for a device is PENDING here.
        """
        jobs = await self._shared.get(MAX_AGE_S)
        if any(job.submission_id == asks for job in jobs):
            return jobs
        return await self._shared.get(MAX_AGE_WITHOUT_S)

    async def _read(self) -> Sequence[JobInfo]:
        jobs = await self._list_jobs()
        loads = [job for load in await loads_of(jobs) for job in _as_jobs(load)]
        own = [job for job in jobs if BATCH_JOB not in job.metadata]
        return [*await asyncio.gather(*(asyncio.to_thread(_as_it_waits, job) for job in own)), *loads]


def _as_jobs(load: Load) -> list[JobInfo]:
    """The steps of a batch job. The batch job itself too if it is at work and none of them is seen at work: hundreds of
    short ones begin and end while their list is read."""
    steps = [step.as_job() for step in load.steps]
    unseen = load.at_work and not any(step.status is JobStatus.RUNNING for step in steps)
    return [load.batch_job, *steps] if unseen else steps


def _as_it_waits(job: JobInfo) -> JobInfo:
    output, attempt = job.metadata.get("marin/output"), job.metadata.get("marin/attempt")
    if "marin/device" not in job.metadata or job.status is not JobStatus.RUNNING or not output or not attempt:
        return job
    try:
        return job if has_begun(output, int(attempt)) else replace(job, status=JobStatus.PENDING)
    except (OSError, ValueError, ControlFileError) as error:  # another user's bucket, or a damaged file
        log.debug("whether the job %s has its device is unknown: %s", job.submission_id, error)
        return job
