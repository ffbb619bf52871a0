"""The batch jobs of one run: a Ray job for each Python that its small steps need, started with the first of them.

In:  the path of a step's note.   Out: a message in the task queue of its batch job; steps that come together share one.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi, connect
from marin_resources.ray_tpu.cluster.batch_jobs.steps import BATCH_JOB
from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import (
    Message,
    TaskQueue,
    TaskQueueClosedError,
    task_queue_path,
)
from marin_resources.ray_tpu.cluster.code.code import Code
from marin_resources.ray_tpu.cluster.errors import NoSuchJobError
from marin_resources.ray_tpu.cluster.handle import runtime_env_of
from marin_resources.ray_tpu.cluster.monitor.shared_read import SharedRead
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.notes.job_notes import BatchJob, Submitter, is_closed
from marin_resources.types.versioned_json import ControlFileError

GATHER_S = 0.02
"""Time for which a message waits for others to the same batch job."""
MAX_INFO_AGE_S = 2.0
"""Maximum age of the state of a batch job: all steps that wait for it share one request."""
STOP_POLL_S = 0.1
FIRST_WAITS_S = 0.1
"""Time for which the first small step of a run waits for others."""

log = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class _Started:
    """A batch job that this run has started."""

    batch_job: BatchJob
    session: str
    outbox: Outbox


class Outbox:
    """Posts messages to one task queue; messages of the same moment are posted as one."""

    def __init__(self, task_queue: str) -> None:
        self._task_queue = TaskQueue(task_queue)
        self._posting = asyncio.Lock()
        self._run: list[str] = []
        self._stop: list[str] = []

    async def run(self, note_path: str) -> None:
        """Raises TaskQueueClosedError."""
        self._run.append(note_path)
        await self._post()

    async def stop(self, note_path: str) -> None:
        """Raises TaskQueueClosedError."""
        self._stop.append(note_path)
        await self._post()

    def end(self) -> None:
        """Blocks."""
        self._task_queue.post(Message(end=True))

    async def _post(self) -> None:
        await asyncio.sleep(GATHER_S)
        async with self._posting:
            if not self._run and not self._stop:  # another caller has posted ours
                return
            message = Message(run=tuple(self._run), stop=tuple(self._stop))
            await asyncio.to_thread(self._task_queue.post, message)
            self._run, self._stop = self._run[len(message.run) :], self._stop[len(message.stop) :]


@dataclass(eq=False, kw_only=True)
class BatchJobs:
    """The batch jobs that a run has started, and the state of all that it waits for."""

    settings: ClusterSettings
    retry: RetryWhileUnreachable
    run_id: str | None
    waiting: int = 0
    """Number of steps of batch jobs that this run waits for."""
    _started: dict[tuple[str, str], _Started] = field(default_factory=dict)
    """By prefix and Python."""
    _small_steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of small steps that were submitted so far, by prefix and Python."""
    _outboxes: dict[str, Outbox] = field(default_factory=dict)
    _infos: dict[str, SharedRead[JobInfo | None]] = field(default_factory=dict)
    """By job."""
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def is_first_alone(self, prefix: str, python: str) -> bool:
        """Whether this is the first small step of the run, and no other comes with it: a job of its own begins in half
        the time that a batch job takes to start, and is enough for a run with one such step."""
        key = (prefix, python)
        self._small_steps[key] += 1
        if self._small_steps[key] == 1:
            await asyncio.sleep(FIRST_WAITS_S)
        return self._small_steps[key] == 1

    async def started(self, prefix: str, python: str, ship: Callable[[JobsApi], Awaitable[Code]]) -> _Started:
        """Return the batch job of this run for a Python; start it if none runs. `ship` uploads the code."""
        async with self._lock(f"{prefix} {python}"):
            running = self._started.get((prefix, python))
            if running is None:
                running = self._started[prefix, python] = await self._start(prefix, python, ship)
            return running

    def forget(self, batch_job: BatchJob) -> None:
        """The next step starts another batch job."""
        self._started = {key: running for key, running in self._started.items() if running.batch_job != batch_job}

    def outbox(self, batch_job: BatchJob) -> Outbox:
        return self._outboxes.setdefault(batch_job.task_queue, Outbox(batch_job.task_queue))

    async def stop(self, batch_job: BatchJob, note_path: str) -> None:
        """Request a batch job to stop a step. Return when the step's note is closed, or the batch job has ended."""
        with suppress(TaskQueueClosedError):
            await self.outbox(batch_job).stop(note_path)
        while not await asyncio.to_thread(is_closed, note_path):
            info = await self.info(batch_job)
            if info is None or info.status.is_terminal:
                return
            await asyncio.sleep(STOP_POLL_S)

    async def info(self, batch_job: BatchJob) -> JobInfo | None:
        """The batch job's job, at most 2 s old; None if the cluster does not have it."""
        shared = self._infos.setdefault(batch_job.job, SharedRead(lambda: self._read_info(batch_job.job)))
        return await shared.get(MAX_INFO_AGE_S)

    async def _read_info(self, job: str) -> JobInfo | None:
        async with connect(self.settings) as api:
            try:
                return await self.retry.call(lambda: api.info(job))
            except NoSuchJobError:
                return None

    def end(self) -> None:
        """Notify the batch jobs of this run that no more steps come. Blocks."""
        for running in self._started.values():
            try:
                running.outbox.end()
            except TaskQueueClosedError:
                continue
            except (UnavailableError, ControlFileError) as error:  # it ends by itself after a while
                log.warning(
                    "the batch job %s cannot be notified that the run has ended (%s)", running.batch_job.job, error
                )
        self._started.clear()

    async def _start(self, prefix: str, python: str, ship: Callable[[JobsApi], Awaitable[Code]]) -> _Started:
        job = f"small-steps-{(self.run_id or 'no-run')[:8]}-{uuid.uuid4().hex[:6]}"
        batch_job = BatchJob(job=job, task_queue=task_queue_path(prefix, job))
        async with connect(self.settings) as api:
            version = await self.retry.call(api.version)
            code = await self.retry.call(lambda: ship(api))
            await self.retry.call(
                lambda: api.submit(
                    submission_id=job,
                    entrypoint=code.command(python, "marin_resources.ray_tpu.job.batch_job", batch_job.task_queue),
                    runtime_env=runtime_env_of(code, self.settings),
                    metadata=self._metadata(batch_job),
                    num_cpus=None,
                    memory_bytes=None,
                )
            )
        return _Started(batch_job=batch_job, session=version.session, outbox=self.outbox(batch_job))

    def _metadata(self, batch_job: BatchJob) -> dict[str, str]:
        fields: dict[str, Any] = {
            "step": "small steps",
            "output": batch_job.task_queue,
            "attempt": "1",
            "run_id": self.run_id or "",
            "user": Submitter.here(self.run_id).user or "",
        }
        return {BATCH_JOB: batch_job.task_queue, **{f"marin/{name}": value for name, value in fields.items()}}

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())
