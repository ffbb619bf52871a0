"""The jobs of a Ray cluster, over HTTP: submit, look, stop, follow. Ray itself is not imported.

    async with connect(settings) as api:
        await api.submit(submission_id="tokenize-1", entrypoint="python -m …", runtime_env={}, metadata={}, …)

Each call ends within its time, and raises one of the errors named here.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

from marin_resources.ray_tpu.cluster.api.errors import (
    ApiError,
    JobExistsError,
    NoSuchJobError,
    NoSuchPackageError,
    RefusedError,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.api.http import Dashboard, TokenFinder
from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus, Version, job_info
from marin_resources.ray_tpu.cluster.api.responses import Request, no_dashboard
from marin_resources.ray_tpu.cluster.api.token import Token, find_token
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

__all__ = [
    "ApiError",
    "JobExistsError",
    "JobInfo",
    "JobStatus",
    "JobsApi",
    "NoSuchJobError",
    "RefusedError",
    "UnreachableError",
    "Version",
    "connect",
]

OLDEST_RAY = (2, 60)
"""Tokens, and the name of a head's session in /api/version."""
UPLOAD_BYTES_PER_S = 1_000_000
"""Slower than this, an upload is given up."""
LOGS_TIMEOUT_S = 120.0
"""Ray reads a whole log before it answers."""
MOST_NODES = 10_000
"""As many as Ray tells at most; without a number, 100."""

T = TypeVar("T")
Jobs = list[JobInfo]
Resources = list[Mapping[str, float]]


def connect(settings: ClusterSettings) -> JobsApi:
    """The jobs of this cluster. Its token is looked for when the block begins, which may raise TokenError."""
    return JobsApi(settings.address, lambda: find_token(settings))


class JobsApi:
    def __init__(self, address: str, token: Token | TokenFinder | None = None, timeout_s: float = 10.0) -> None:
        """`timeout_s` is for each request, and for the silence of one that is listened to."""
        self.address = address.rstrip("/")
        self._dashboard = Dashboard(address, token, timeout_s)

    async def __aenter__(self) -> JobsApi:
        await self._dashboard.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._dashboard.__aexit__(kind, error, at)

    async def version(self) -> Version:
        """Raises ApiError for a Ray that is too old, and for a server that is something else."""
        return await self._ask(
            Request(what="Asking for Ray's version", method="GET", path="/api/version"), self._version
        )

    async def submit(
        self,
        *,
        submission_id: str,
        entrypoint: str,
        runtime_env: Mapping[str, Any],
        metadata: Mapping[str, str],
        num_cpus: float | None,
        memory_bytes: int | None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        """Give the cluster a job. Raises JobExistsError if it has one of this id, for example from a try before."""
        body = {
            "submission_id": submission_id,
            "entrypoint": entrypoint,
            "runtime_env": dict(runtime_env),
            "metadata": dict(metadata),
            "entrypoint_num_cpus": num_cpus,
            "entrypoint_memory": memory_bytes,
            "entrypoint_resources": dict(resources) if resources else None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        request = Request(what=f"Submitting the job {submission_id!r}", method="POST", path="/api/jobs/")
        await self._ask(request, lambda answer: answer["submission_id"], body=given)

    async def info(self, submission_id: str) -> JobInfo:
        request = Request(what=f"Asking for the job {submission_id!r}", method="GET", path=_path(submission_id))
        return await self._ask(request, job_info)

    async def list(self) -> Jobs:
        """The jobs that were submitted as such, not those of whoever connected to the cluster."""
        request = Request(what="Asking for the jobs", method="GET", path="/api/jobs/")
        return await self._ask(request, lambda jobs: [job_info(job) for job in jobs if job["type"] == "SUBMISSION"])

    async def stop(self, submission_id: str) -> bool:
        """Whether there was something to stop. It is told to; look at `info` for when it has ended."""
        path = f"{_path(submission_id)}/stop"
        request = Request(what=f"Stopping the job {submission_id!r}", method="POST", path=path)
        return await self._ask(request, lambda answer: bool(answer["stopped"]))

    async def delete(self, submission_id: str) -> bool:
        """Forget a job that has ended. Raises ApiError for one that has not."""
        request = Request(what=f"Deleting the job {submission_id!r}", method="DELETE", path=_path(submission_id))
        return await self._ask(request, lambda answer: bool(answer["deleted"]))

    async def logs(self, submission_id: str) -> str:
        """All that it has printed so far; "" if it has not begun."""
        path = f"{_path(submission_id)}/logs"
        request = Request(what=f"Asking for the log of the job {submission_id!r}", method="GET", path=path)
        return await self._ask(request, lambda answer: str(answer["logs"] or ""), total_s=LOGS_TIMEOUT_S)

    async def tail(self, submission_id: str) -> AsyncGenerator[str]:
        """What it prints, from its first line on, until it has ended. Raises UnreachableError if that is cut short."""
        path = f"{_path(submission_id)}/logs/tail"
        request = Request(what=f"Following the log of the job {submission_id!r}", method="GET", path=path)
        await self.info(submission_id)  # the refusal of a websocket says nothing but its number
        async with aclosing(self._dashboard.listen(request, lambda: self.info(submission_id))) as texts:
            async for text in texts:
                yield text
        # The dashboard ends the websocket in the same way when its own source, the job's node, is gone.
        if not (await self.info(submission_id)).status.is_terminal:
            raise UnreachableError(f"{request.what}: {self.address} ended it before the job has ended.")

    async def has_package(self, uri: str) -> bool:
        request = Request(what=f"Asking for the package {uri!r}", method="GET", path=_package_path(uri))
        try:
            await self._dashboard.ask(request)
        except NoSuchPackageError:
            return False
        return True

    async def upload_package(self, uri: str, data: bytes) -> None:
        request = Request(what=f"Uploading the package {uri!r}", method="PUT", path=_package_path(uri))
        total_s = self._dashboard.timeout_s + len(data) / UPLOAD_BYTES_PER_S
        await self._dashboard.ask(request, data=data, total_s=total_s)

    async def node_resources(self) -> Resources:
        """What each node that is alive has in all, in use or not."""
        path = f"/api/v0/nodes?limit={MOST_NODES}"
        request = Request(what="Asking for the nodes", method="GET", path=path)
        return await self._ask(request, _totals)

    async def _ask(self, request: Request, read: Callable[[Any], T], *, body: Any = None, total_s: float = 0) -> T:
        answer = await self._dashboard.ask(request, body=body, total_s=total_s)
        try:
            return read(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            trouble = no_dashboard(self.address, f"what it answered to {request.method} {request.path} is not Ray's")
        raise trouble

    def _version(self, answer: Any) -> Version:
        ray_version, session = str(answer["ray_version"]), answer.get("session_name")
        if not session or tuple(map(int, re.findall(r"\d+", ray_version)[:2])) < OLDEST_RAY:
            raise ApiError(
                f"The cluster at {self.address} runs Ray {ray_version!r}, expected 2.60 or newer. Upgrade the cluster, "
                "or set MARIN_CLUSTER to another."
            )
        return Version(ray_version=ray_version, session=str(session))


def _totals(answer: Any) -> Resources:
    nodes = answer["data"]["result"]["result"]
    return [node["resources_total"] for node in nodes if node["state"] == "ALIVE"]


def _path(submission_id: str) -> str:
    return f"/api/jobs/{quote(submission_id, safe='')}"


def _package_path(uri: str) -> str:
    """Of "gcs://_ray_pkg_….zip"."""
    protocol, _, name = uri.partition("://")
    return f"/api/packages/{protocol}/{quote(name, safe='')}"
