"""Wait for a job until it has ended, has vanished with its head, or can never begin; follow its log meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.errors import ApiError, NoSuchJobError, UnreachableError
from marin_resources.ray_tpu.cluster.handle import JobHandle
from marin_resources.ray_tpu.cluster.monitor.job_log import JobLog
from marin_resources.ray_tpu.cluster.monitor.start_watch import StartWatch
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.storage.files import exists
from marin_resources.storage.output.attempts import has_begun
from marin_resources.storage.output.notes import job_notes
from marin_resources.wire.outcome import End, Outcome

FIRST_POLL_S = 0.25
MAX_POLL_S = 2.0
POLL_GROWTH = 1.05
"""The pause grows from the first to the longest within about a minute: the end of a short job is seen at once."""
MAX_MISSING_POLLS = 5
"""Polls, 1 s apart, of a head that does not know the job before it counts as deleted: a head may load jobs slowly."""
LAST_LINES_TIMEOUT_S = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JobMonitor:
    """Waits for one job."""

    api: JobsApi
    retry: RetryWhileUnreachable
    handle: JobHandle
    job_log: JobLog
    start_watch: StartWatch
    device_watch: StartWatch | None
    """Reports what a job that has begun waits for, which needs a device elsewhere."""
    on_progress: Callable[[], None]
    """Called after each read of the log. May block."""

    async def wait(self) -> JobInfo | Outcome:
        """Return the ended job, or the outcome if the cluster has lost the job. All of the log is passed on."""
        set_up = asyncio.create_task(self._follow_set_up())
        stdout = ""
        try:
            ended = await self._until_ended()
            if isinstance(ended, JobInfo) and not await asyncio.to_thread(self._log_is_complete):
                await asyncio.wait([set_up], timeout=LAST_LINES_TIMEOUT_S)
                if self.job_log.set_up_is_over:
                    stdout = await self._whole_stdout()
        finally:
            set_up.cancel()
            await asyncio.to_thread(self.on_progress)
        await asyncio.to_thread(upload_spool, self.job_log.path)  # of a killed worker on this machine
        await asyncio.to_thread(self.job_log.finish, stdout)
        return ended

    def _log_is_complete(self) -> bool:
        """Whether the worker has reported its outcome, which it does after the end of the attempt's log."""
        note = job_notes.read_note(self.handle.note_path)
        return note is not None and note.outcome is not None and exists(self.job_log.path)

    async def _follow_set_up(self) -> None:
        """Feed the job's stdout up to the marker or the job's end; after a break, from its first line."""
        while not self.job_log.set_up_is_over:
            try:
                async with aclosing(self.api.tail(self.handle.job)) as texts:
                    async for text in texts:
                        self.job_log.feed_job(text)
                        if self.job_log.set_up_is_over:
                            break
                return
            except NoSuchJobError:
                return
            except (UnreachableError, ApiError) as error:
                log.debug("the log of job %s cannot be read now: %s", self.handle.job, error)
                await asyncio.sleep(MAX_POLL_S)
                self.job_log.job_restarted()

    async def _whole_stdout(self) -> str:
        """The stdout of a job that ended without an outcome; nothing if it cannot be read within 2 s."""
        pieces: list[str] = []
        try:
            async with asyncio.timeout(LAST_LINES_TIMEOUT_S), aclosing(self.api.tail(self.handle.job)) as texts:
                async for text in texts:
                    pieces.append(text)
        except (TimeoutError, NoSuchJobError, UnreachableError, ApiError) as error:
            log.debug("the last lines of job %s cannot be read: %s", self.handle.job, error)
        return "".join(pieces)

    async def _until_ended(self) -> JobInfo | Outcome:
        poll_s, missing, has_device = FIRST_POLL_S, 0, self.device_watch is None
        while True:
            try:
                info, missing = await self._info(), 0
            except NoSuchJobError:
                missing += 1
                reason = await self._why_missing(missing)
                if reason is not None:
                    return await self._lost(reason)
                await asyncio.sleep(1.0)
                continue
            if info.status.is_terminal:
                return info
            if info.status is JobStatus.PENDING and (short := await self.start_watch.look()) is not None:
                return await self._give_up(short)
            has_device = has_device or await asyncio.to_thread(self._has_claimed)
            if info.status is JobStatus.RUNNING and not has_device and self.device_watch is not None:
                await self.device_watch.look()  # the job gives up by itself, as it outlives this run
            await asyncio.to_thread(self.job_log.poll_attempt)
            await asyncio.to_thread(self.on_progress)
            await asyncio.sleep(poll_s)
            poll_s = min(poll_s * POLL_GROWTH, MAX_POLL_S)

    def _has_claimed(self) -> bool:
        return has_begun(self.handle.output_path, self.handle.note.attempt)

    async def _info(self) -> JobInfo:
        return await self.retry.call(lambda: self.api.info(self.handle.job))

    async def _why_missing(self, missing: int) -> str | None:
        """Why the head does not know the job; None if it may still load it."""
        if (await self.retry.call(self.api.version)).session != self.handle.note.session:
            return f"the head of {self.handle.address} came back without the cluster job {self.handle.job}"
        if missing >= MAX_MISSING_POLLS:
            return f"cluster job {self.handle.job} was deleted from {self.handle.address}"
        return None

    async def _lost(self, reason: str) -> Outcome:
        """The worker's own outcome if it reported one; else LOST, as the worker may run on for a while."""
        note = await asyncio.to_thread(job_notes.add_ended, self.handle.note_path, reason)
        if note.outcome is not None:
            return note.outcome
        return Outcome(end=End.LOST, error=reason, may_live=True)

    async def _give_up(self, short: str) -> Outcome:
        """Stop the job. Ray cannot stop a pending job; because of the note, it exits as soon as it begins."""
        limit_s = self.start_watch.start_timeout_s
        error = (
            f"its cluster job {self.handle.job} did not begin within {limit_s:g} s, as no node has what it asks for: "
            f"{short}"
        )
        await asyncio.to_thread(job_notes.add_stop, self.handle.note_path, "its start timeout", error)
        await self.retry.call(lambda: self.api.stop(self.handle.job))
        return Outcome(end=End.FAILED, error=error)
