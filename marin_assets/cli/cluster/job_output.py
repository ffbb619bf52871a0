"""What a job prints, on stdout as it comes, through breaks of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from marin_assets.cli.output import pass_on, warn
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi

POLL_S = 0.5


async def follow(api: JobsApi, settings: ClusterSettings, job: str, show: Callable[[str], None] = pass_on) -> JobInfo:
    """Show the log of a job from its first line on, each part once. Returns the job when it has ended.

    Raises OutageError if the cluster is away for too long, NoSuchJobError if it came back without the job.
    """
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus, UnreachableError
    from marin_resources.ray_tpu.cluster.outage import Patience

    patience = Patience(settings.address, settings.outage_timeout_s, warn)
    seen, waits = _Seen(show), False
    while True:
        info = await patience.ask(lambda: api.info(job))
        if info.status is JobStatus.PENDING:
            if not waits:
                warn(f"job {job} waits for a node")
            waits = True
            await asyncio.sleep(POLL_S)
            continue
        try:
            seen.begin()
            async for text in api.tail(job):
                seen.add(text)
        except UnreachableError:
            await asyncio.sleep(POLL_S)
            continue  # `patience` says so, and waits
        info = await patience.ask(lambda: api.info(job))
        if info.status.is_terminal:
            seen.begin()
            seen.add(await patience.ask(lambda: api.logs(job)))
            return info
        await asyncio.sleep(POLL_S)


class _Seen:
    """Shows of a text that is told again and again from its beginning what is new."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._shown, self._at = show, 0, 0

    def begin(self) -> None:
        self._at = 0

    def add(self, text: str) -> None:
        new = text[max(0, self._shown - self._at) :]
        self._at += len(text)
        self._shown = max(self._shown, self._at)
        if new:
            self._show(new)
