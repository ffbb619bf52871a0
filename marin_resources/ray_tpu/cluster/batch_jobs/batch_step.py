"""Wait for a step of a batch job, until its worker or the batch job closes its note; follow its log meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo
from marin_resources.ray_tpu.cluster.batch_jobs.batch_jobs import BatchJobs
from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import TaskQueueClosedError
from marin_resources.ray_tpu.cluster.handle import JobHandle
from marin_resources.ray_tpu.cluster.monitor.job_log import JobLog
from marin_resources.ray_tpu.cluster.monitor.outcome import outcome_of, stopped_outcome
from marin_resources.ray_tpu.cluster.monitor.start_watch import StartWatch
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.storage.output.attempts import has_begun
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.notes.job_notes import BatchJob, JobNote
from marin_resources.wire.outcome import End, Outcome

FIRST_POLL_S, MAX_POLL_S, POLL_GROWTH = 0.1, 1.0, 1.1
POLL_S_FOR_EACH = 0.005
"""A thousand steps that wait are each polled every 5 s, as polling costs the run about 1 ms."""
BATCH_JOB_POLL_S = 2.0


@dataclass(frozen=True, kw_only=True)
class BatchStep:
    """Waits for one step of a batch job."""

    handle: JobHandle
    batch_job: BatchJob
    batch_jobs: BatchJobs
    job_log: JobLog
    start_watch: StartWatch
    on_progress: Callable[[], None]
    """Called after each read of the log. May block."""

    async def wait(self) -> Outcome:
        """Return the outcome. All of the log is passed on."""
        self.batch_jobs.waiting += 1
        try:
            outcome = await self._until_ended()
        finally:
            self.batch_jobs.waiting -= 1
            await asyncio.to_thread(self.on_progress)
        await asyncio.to_thread(upload_spool, self.job_log.path)  # of a killed worker on this machine
        await asyncio.to_thread(self.job_log.finish)
        return outcome

    async def _until_ended(self) -> Outcome:
        """The note has the end of the step, also while the dashboard does not answer."""
        watching = asyncio.create_task(self._until_batch_job_ended())
        poll_s = FIRST_POLL_S
        try:
            while not watching.done():
                note = await asyncio.to_thread(self._note)
                if (outcome := _outcome_in(note)) is not None:
                    return outcome
                await asyncio.to_thread(self.job_log.poll_attempt)
                await asyncio.to_thread(self.on_progress)
                await asyncio.wait([watching], timeout=self._at_least(poll_s))
                poll_s = min(poll_s * POLL_GROWTH, MAX_POLL_S)
            return await watching
        finally:
            watching.cancel()

    async def _until_batch_job_ended(self) -> Outcome:
        """Return the outcome of a step that its batch job can run no more, or that no node can hold."""
        begun = False
        while True:
            await asyncio.sleep(self._at_least(BATCH_JOB_POLL_S))
            info = await self.batch_jobs.info(self.batch_job)
            if info is None or info.status.is_terminal:
                self.batch_jobs.forget(self.batch_job)
                return await asyncio.to_thread(self._without_batch_job, info)
            begun = begun or await asyncio.to_thread(has_begun, self.handle.output_path, self.handle.note.attempt)
            if not begun and (short := await self.start_watch.look()) is not None:
                return await self._give_up(short)

    def _at_least(self, poll_s: float) -> float:
        return max(poll_s, self.batch_jobs.waiting * POLL_S_FOR_EACH)

    def _note(self) -> JobNote:
        return job_notes.read_note(self.handle.note_path) or self.handle.note

    def _without_batch_job(self, info: JobInfo | None) -> Outcome:
        """The outcome of a step whose batch job has ended or is unknown. Its worker dies with it, but not at once."""
        note = self._note()
        outcome = _outcome_in(note)
        if outcome is not None:
            return outcome
        if info is None:
            outcome = Outcome(
                end=End.LOST, error=f"the cluster does not have its batch job {self.batch_job.job} any more"
            )
        else:
            outcome = outcome_of(note, info, self.handle.output_path)
        job_notes.add_ended(self.handle.note_path, outcome.error)
        return replace(outcome, may_live=outcome.end is End.LOST)

    async def _give_up(self, short: str) -> Outcome:
        limit_s = self.start_watch.start_timeout_s
        error = f"it did not begin within {limit_s:g} s, as no node has what it asks for: {short}"
        await asyncio.to_thread(job_notes.add_stop, self.handle.note_path, "its start timeout", error)
        with suppress(TaskQueueClosedError):
            await self.batch_jobs.outbox(self.batch_job).stop(self.handle.note_path)
        return Outcome(end=End.FAILED, error=error)


def _outcome_in(note: JobNote) -> Outcome | None:
    if note.outcome is not None:
        return note.outcome
    if note.ended is None:
        return None
    return stopped_outcome(note) if note.stop is not None else Outcome(end=End.LOST, error=note.ended)
