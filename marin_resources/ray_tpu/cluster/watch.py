"""Wait for a job: until it has ended, is gone with its head, or has not begun in time; and follow what it prints."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.jobs_api import (
    ApiError,
    JobInfo,
    JobsApi,
    JobStatus,
    NoSuchJobError,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.handle import JobHandle
from marin_resources.ray_tpu.cluster.job_log import JobLog
from marin_resources.ray_tpu.cluster.outage import Patience
from marin_resources.ray_tpu.ray_options import shortcomings
from marin_resources.storage.files import exists
from marin_resources.storage.output import job_notes
from marin_resources.wire.outcome import End, Outcome

FIRST_POLL_S = 0.25
LONGEST_POLL_S = 2.0
POLL_GROWTH = 1.05
"""From the first to the longest pause in about a minute: what is short is seen to end at once."""
GONE_LOOKS = 5
"""So often, a second apart, a head is asked for a job that it says it does not have: it may be slow to remember."""
LAST_LINES_S = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """One job, and whom to ask for it."""

    api: JobsApi
    patience: Patience
    handle: JobHandle
    job_log: JobLog
    start_timeout_s: float
    passed_on: Callable[[], None]
    """Called after each look at the log. May block."""

    async def end(self) -> JobInfo | Outcome:
        """The job that has ended; or the outcome, where none is left that could end. All of its log is passed on."""
        tail = asyncio.create_task(self._tail())
        try:
            ended = await self._until_ended()
            if isinstance(ended, JobInfo) and not await asyncio.to_thread(self._log_is_whole):
                await asyncio.wait([tail], timeout=LAST_LINES_S)
        finally:
            tail.cancel()
            await asyncio.to_thread(self.passed_on)
        return ended

    def _log_is_whole(self) -> bool:
        """A worker that has told its outcome has written all of the attempt's log before, if it came to have one."""
        note = job_notes.read_note(self.handle.path)
        return note is not None and note.outcome is not None and exists(self.job_log.path)

    async def _tail(self) -> None:
        """Feed what the job prints, from its first line after each break. Ends with the job."""
        while True:
            try:
                async for text in self.api.tail(self.handle.job):
                    self.job_log.feed_job(text)
                return
            except NoSuchJobError:
                return
            except (UnreachableError, ApiError) as error:  # the attempt's own log is followed meanwhile
                log.debug("the log of job %s cannot be read now: %s", self.handle.job, error)
                await asyncio.sleep(LONGEST_POLL_S)
                self.job_log.job_restarted()

    async def _until_ended(self) -> JobInfo | Outcome:
        poll_s, began_s, missed = FIRST_POLL_S, time.monotonic(), 0
        while True:
            try:
                info, missed = await self._ask(), 0
            except NoSuchJobError:
                missed += 1
                why = await self._why_gone(missed)
                if why is not None:
                    return await self._gone(why)
                await asyncio.sleep(1.0)
                continue
            if info.status.is_terminal:
                return info
            if info.status is JobStatus.PENDING and time.monotonic() - began_s > self.start_timeout_s:
                return await self._give_up(info)
            await asyncio.to_thread(self.job_log.poll_attempt)
            await asyncio.to_thread(self.passed_on)
            await asyncio.sleep(poll_s)
            poll_s = min(poll_s * POLL_GROWTH, LONGEST_POLL_S)

    async def _ask(self) -> JobInfo:
        return await self.patience.ask(lambda: self.api.info(self.handle.job))

    async def _why_gone(self, missed: int) -> str | None:
        """Why the head does not have the job; None if it may only be slow."""
        if (await self.patience.ask(self.api.version)).session != self.handle.note.session:
            return f"the head of {self.handle.address} came back without job {self.handle.job}"
        return f"job {self.handle.job} was deleted from {self.handle.address}" if missed >= GONE_LOOKS else None

    async def _gone(self, why: str) -> Outcome:
        """The worker may have said how it ended; or it works on, for a while, without a head."""
        note = await asyncio.to_thread(job_notes.add_ended, self.handle.path, why)
        if note.outcome is not None:
            return note.outcome
        return Outcome(end=End.LOST, error=why, may_live=True)

    async def _give_up(self, info: JobInfo) -> Outcome:
        """Ray cannot stop what is pending, so the note tells it to leave again, should it begin."""
        task = self.handle.note.task
        nodes = await self.patience.ask(self.api.node_resources)
        short = shortcomings(task.resources, nodes)
        reason = f"no node has what it asks for: {short}" if short else f"Ray says: {info.message or 'nothing'}"
        why = f"its job {self.handle.job} did not begin within {self.start_timeout_s:g} s ({reason})"
        await asyncio.to_thread(job_notes.add_stop, self.handle.path, "its start timeout", why)
        await self.patience.ask(lambda: self.api.stop(self.handle.job))
        return Outcome(end=End.FAILED, error=why)
