"""Follow the output of a job on stdout, through breaks of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from marin_assets.run.output import print_raw, print_stderr
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi

POLL_S = 0.5


async def follow(api: JobsApi, settings: ClusterSettings, job: str, show: Callable[[str], None] = print_raw) -> JobInfo:
    """Show the output of a job from its first line on, each part once. Return the job when it has ended.

    Raise OutageError if the cluster is unreachable for too long, NoSuchJobError if it came back without the job.
    """
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus, UnreachableError
    from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable

    retry = RetryWhileUnreachable(settings.address, settings.outage_timeout_s, print_stderr)
    shown, pending_reported = _ShowNew(show), False
    while True:
        info = await retry.call(lambda: api.info(job))
        if info.status is JobStatus.PENDING:
            if not pending_reported:
                print_stderr(f"job {job} waits for a node")
            pending_reported = True
            await asyncio.sleep(POLL_S)
            continue
        try:
            shown.restart()
            async for text in api.tail(job):
                shown.feed(text)
        except UnreachableError:
            await asyncio.sleep(POLL_S)
            continue  # `retry` reports the outage, and waits
        info = await retry.call(lambda: api.info(job))
        if info.status.is_terminal:
            shown.restart()
            shown.feed(await retry.call(lambda: api.logs(job)))
            return info
        await asyncio.sleep(POLL_S)


class _ShowNew:
    """Shows the new part of a text that is read again from its beginning."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._shown, self._at = show, 0, 0

    def restart(self) -> None:
        self._at = 0

    def feed(self, text: str) -> None:
        new = text[max(0, self._shown - self._at) :]
        self._at += len(text)
        self._shown = max(self._shown, self._at)
        if new:
            self._show(new)
