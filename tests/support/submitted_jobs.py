"""Jobs with a note (`job_process.py`), submitted to a real cluster."""

from __future__ import annotations

import asyncio
import shlex
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from job_process import Job
from ray_cluster import Cluster
from running import wait_until

from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi, connect

T = TypeVar("T")
END_TIMEOUT_S = 120


@dataclass(frozen=True, kw_only=True)
class Submitted:
    id: str
    cluster: Cluster
    job: Job

    def ask(self, what: Callable[[JobsApi], Awaitable[T]]) -> T:
        async def ask() -> T:
            async with connect(self.cluster.settings()) as api:
                return await what(api)

        return asyncio.run(ask())

    def info(self) -> JobInfo:
        return self.ask(lambda api: api.info(self.id))

    def logs(self) -> str:
        """The job's stdout."""
        return self.ask(lambda api: api.logs(self.id))

    def ended(self) -> JobInfo:
        """Wait for the end of the job; return it."""
        return wait_until(self._ended_now, f"job {self.id} to end", END_TIMEOUT_S)

    def await_log(self, text: str) -> str:
        """Wait until the text is in the job's stdout; return all of it."""
        return wait_until(lambda: found if text in (found := self.logs()) else None, text, END_TIMEOUT_S)

    def stop(self) -> None:
        assert self.ask(lambda api: api.stop(self.id))

    def _ended_now(self) -> JobInfo | None:
        info = self.info()
        return info if info.status.is_terminal else None


def submit(
    cluster: Cluster, job: Job, *, cpus: float = 1, environ: Mapping[str, str] | None = None, code: str | None = None
) -> Submitted:
    """Submit a job. `environ` goes into its runtime environment, like the deployment's variables. `code` replaces the
    entry point; its argument is the path of the note."""
    program = ["-c", code] if code else ["-m", "marin_resources.ray_tpu.job"]
    words = [sys.executable, *program, job.path]
    submitted = Submitted(id=f"job-{uuid.uuid4().hex[:8]}", cluster=cluster, job=job)
    submitted.ask(
        lambda api: api.submit(
            submission_id=submitted.id,
            entrypoint=f"cd {shlex.quote(str(job.folder))} && exec {shlex.join(words)}",
            runtime_env={"env_vars": dict(environ)} if environ else {},
            metadata={},
            num_cpus=cpus,
            memory_bytes=None,
        )
    )
    return submitted
