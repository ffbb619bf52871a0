"""Jobs on a cluster, for tests of the command line."""

from __future__ import annotations

import asyncio
import shlex
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi, JobStatus, connect
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

T = TypeVar("T")
TIMEOUT_S = 60


@dataclass(frozen=True)
class JobsThere:
    settings: ClusterSettings

    @property
    def address(self) -> str:
        return self.settings.address

    def run(self, program: str, *, metadata: Mapping[str, str] | None = None, cpus: float = 0.1) -> str:
        """Submit a Python program; return the job's id."""
        job = f"job-{uuid.uuid4().hex[:8]}"

        async def submit(api: JobsApi) -> None:
            await api.submit(
                submission_id=job,
                entrypoint=f"exec {shlex.join([sys.executable, '-uc', program])}",
                runtime_env={},
                metadata=dict(metadata or {}),
                num_cpus=cpus,
                memory_bytes=None,
            )

        self._ask(submit)
        return job

    def info(self, job: str) -> JobInfo:
        return self._ask(lambda api: api.info(job))

    def log(self, job: str) -> str:
        return self._ask(lambda api: api.logs(job))

    def until(self, job: str, holds: Callable[[JobInfo], bool]) -> JobInfo:
        async def wait(api: JobsApi) -> JobInfo:
            async with asyncio.timeout(TIMEOUT_S):
                while not holds(info := await api.info(job)):
                    await asyncio.sleep(0.1)
                return info

        return self._ask(wait)

    def until_it_says(self, job: str, text: str) -> None:
        async def wait(api: JobsApi) -> None:
            async with asyncio.timeout(TIMEOUT_S):
                while text not in (log := await api.logs(job)):
                    assert not (await api.info(job)).status.is_terminal, log
                    await asyncio.sleep(0.1)

        self._ask(wait)

    def until_ended(self, job: str) -> JobInfo:
        return self.until(job, lambda info: info.status.is_terminal)

    def until_running(self, job: str) -> JobInfo:
        return self.until(job, lambda info: info.status is not JobStatus.PENDING)

    def end(self, job: str) -> None:
        self._ask(lambda api: api.stop(job))

    def newest(self) -> JobInfo:
        return max(self._ask(lambda api: api.list()), key=lambda job: job.submitted_at_s or 0.0)

    def _ask(self, ask: Callable[[JobsApi], Awaitable[T]]) -> T:
        async def asked() -> T:
            async with connect(self.settings) as api:
                return await ask(api)

        return asyncio.run(asked())
