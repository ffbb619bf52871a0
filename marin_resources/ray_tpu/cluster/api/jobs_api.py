"""The jobs of a Ray cluster over HTTP: submit, list, stop, follow. Ray itself is not imported.

    async with connect(settings) as api:
        await api.submit(submission_id="tokenize-1", entrypoint="python -m …", runtime_env={}, metadata={}, …)

Each call has a time limit, and raises one of the errors of `cluster.errors`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

from marin_resources.ray_tpu.cluster.api.http import Dashboard, TokenFinder
from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus, RayVersion, parse_job_info
from marin_resources.ray_tpu.cluster.api.responses import ApiRequest, not_a_dashboard
from marin_resources.ray_tpu.cluster.api.token import Token, find_token
from marin_resources.ray_tpu.cluster.errors import (
    ApiError,
    JobExistsError,
    NoSuchJobError,
    NoSuchPackageError,
    RefusedError,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

__all__ = [
    "ApiError",
    "JobExistsError",
    "JobInfo",
    "JobStatus",
    "JobsApi",
    "NoSuchJobError",
    "RayVersion",
    "RefusedError",
    "UnreachableError",
    "connect",
]

OLDEST_RAY = (2, 60)
"""The first with tokens, and with the session of a head in /api/version."""
MIN_UPLOAD_BYTES_PER_S = 1_000_000
"""A slower upload times out."""
LOGS_TIMEOUT_S = 120.0
"""Ray reads the whole log before it responds."""
MAX_NODES = 10_000
"""Ray's own maximum; its default is 100."""

NOT_PLACED = ("PENDING", "PREPARED", "RESCHEDULING")
"""Ray's states of a placement group."""

T = TypeVar("T")
Jobs = list[JobInfo]
Resources = list[Mapping[str, float]]


def connect(settings: ClusterSettings) -> JobsApi:
    """Return the API of this cluster. Its token is found on `async with`, which may raise TokenError."""
    return JobsApi(settings.address, lambda: find_token(settings))


class JobsApi:
    def __init__(self, address: str, token: Token | TokenFinder | None = None, timeout_s: float = 10.0) -> None:
        """`timeout_s` is the limit of each request, and of the silence of a stream before it is checked."""
        self.address = address.rstrip("/")
        self._dashboard = Dashboard(address, token, timeout_s)

    async def __aenter__(self) -> JobsApi:
        await self._dashboard.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._dashboard.__aexit__(kind, error, at)

    async def version(self) -> RayVersion:
        """Raise ApiError if Ray is too old, or the server is not a Ray dashboard."""
        return await self._request(
            ApiRequest(action="Reading Ray's version", method="GET", path="/api/version"), self._version
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
        """Submit a job. Raise JobExistsError if the cluster has one of this id, for example from an earlier try."""
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
        request = ApiRequest(action=f"Submitting the job {submission_id!r}", method="POST", path="/api/jobs/")
        await self._request(request, lambda response: response["submission_id"], body=given)

    async def info(self, submission_id: str) -> JobInfo:
        request = ApiRequest(action=f"Reading the job {submission_id!r}", method="GET", path=_path(submission_id))
        return await self._request(request, parse_job_info)

    async def list(self) -> Jobs:
        """The submitted jobs, without those of drivers that connected to the cluster."""
        request = ApiRequest(action="Listing the jobs", method="GET", path="/api/jobs/")
        return await self._request(
            request, lambda jobs: [parse_job_info(job) for job in jobs if job["type"] == "SUBMISSION"]
        )

    async def stop(self, submission_id: str) -> bool:
        """Request the stop of a job; return whether Ray's supervisor of it was alive. Poll `info` for its end."""
        path = f"{_path(submission_id)}/stop"
        request = ApiRequest(action=f"Stopping the job {submission_id!r}", method="POST", path=path)
        return await self._request(request, lambda response: bool(response["stopped"]))

    async def delete(self, submission_id: str) -> bool:
        """Delete a job that has ended. Raise ApiError if it has not."""
        request = ApiRequest(action=f"Deleting the job {submission_id!r}", method="DELETE", path=_path(submission_id))
        return await self._request(request, lambda response: bool(response["deleted"]))

    async def logs(self, submission_id: str) -> str:
        """The output of a job so far; "" if it has not begun."""
        path = f"{_path(submission_id)}/logs"
        request = ApiRequest(action=f"Reading the log of the job {submission_id!r}", method="GET", path=path)
        return await self._request(request, lambda response: str(response["logs"] or ""), total_s=LOGS_TIMEOUT_S)

    async def tail(self, submission_id: str) -> AsyncGenerator[str]:
        """Yield the output of a job from its first line until it has ended. Raise UnreachableError if that is cut."""
        path = f"{_path(submission_id)}/logs/tail"
        request = ApiRequest(action=f"Following the log of the job {submission_id!r}", method="GET", path=path)
        await self.info(submission_id)  # a rejected websocket has a status and no message
        async with aclosing(self._dashboard.stream(request, lambda: self.info(submission_id))) as texts:
            async for text in texts:
                yield text
        # The dashboard closes the websocket in the same way when its own source, the job's node, is gone.
        if not (await self.info(submission_id)).status.is_terminal:
            raise UnreachableError(f"{request.action}: {self.address} closed it before the job has ended.")

    async def has_package(self, uri: str) -> bool:
        request = ApiRequest(action=f"Looking up the package {uri!r}", method="GET", path=_package_path(uri))
        try:
            await self._dashboard.request(request)
        except NoSuchPackageError:
            return False
        return True

    async def upload_package(self, uri: str, data: bytes) -> None:
        request = ApiRequest(action=f"Uploading the package {uri!r}", method="PUT", path=_package_path(uri))
        total_s = self._dashboard.timeout_s + len(data) / MIN_UPLOAD_BYTES_PER_S
        await self._dashboard.request(request, data=data, total_s=total_s)

    async def node_resources(self) -> Resources:
        """The total resources of each node that is alive, in use or not."""
        path = f"/api/v0/nodes?limit={MAX_NODES}"
        request = ApiRequest(action="Listing the nodes", method="GET", path=path)
        return await self._request(request, _totals)

    async def hosts_of_slices(self) -> Mapping[str, int]:
        """Name of a slice of a TPU pod -> its hosts that are nodes of the cluster and alive."""
        path = f"/api/v0/nodes?limit={MAX_NODES}&detail=1"
        request = ApiRequest(action="Listing the nodes", method="GET", path=path)
        return await self._request(request, _hosts_of_slices)

    async def waiting_groups(self) -> Sequence[str]:
        """The names of the placement groups that Ray has not placed yet; those without a name are left out."""
        path = f"/api/v0/placement_groups?limit={MAX_NODES}"
        request = ApiRequest(action="Listing the placement groups", method="GET", path=path)
        return await self._request(request, _waiting_groups)

    async def coming_resources(self) -> Mapping[str, float]:
        """The most that one of the nodes has which the autoscaler starts now; nothing without an autoscaler.

        The autoscaler reports a sum: it is divided by the number of nodes if all are of one type.
        """
        request = ApiRequest(action="Reading the autoscaler's report", method="GET", path="/api/cluster_status")
        return await self._request(request, _coming)

    async def _request(
        self, request: ApiRequest, read: Callable[[Any], T], *, body: Any = None, total_s: float = 0
    ) -> T:
        response = await self._dashboard.request(request, body=body, total_s=total_s)
        try:
            return read(response)
        except (KeyError, TypeError, ValueError, AttributeError):
            error = not_a_dashboard(self.address, f"its response to {request.method} {request.path} is not Ray's")
        raise error

    def _version(self, response: Any) -> RayVersion:
        ray_version, session = str(response["ray_version"]), response.get("session_name")
        if not session or tuple(map(int, re.findall(r"\d+", ray_version)[:2])) < OLDEST_RAY:
            raise ApiError(
                f"The cluster at {self.address} runs Ray {ray_version!r}, expected 2.60 or newer. Upgrade the cluster, "
                "or set MARIN_CLUSTER to another."
            )
        return RayVersion(ray_version=ray_version, session=str(session))


def _totals(response: Any) -> Resources:
    nodes = response["data"]["result"]["result"]
    return [node["resources_total"] for node in nodes if node["state"] == "ALIVE"]


def _hosts_of_slices(response: Any) -> Mapping[str, int]:
    nodes = response["data"]["result"]["result"]
    names = (node["labels"].get("ray.io/tpu-slice-name") for node in nodes if node["state"] == "ALIVE")
    return Counter(name for name in names if name)


def _waiting_groups(response: Any) -> Sequence[str]:
    groups = response["data"]["result"]["result"]
    return [group["name"] for group in groups if group["state"] in NOT_PLACED and group["name"]]


def _coming(response: Any) -> Mapping[str, float]:
    report = (response["data"]["clusterStatus"] or {}).get("autoscalerReport") or {}
    types = [kind for _, kind, _ in report.get("pendingNodes") or ()]
    types += [kind for kind, count in (report.get("pendingLaunches") or {}).items() for _ in range(count)]
    share = len(types) if len(set(types)) == 1 else 1
    return {str(name): float(amount) / share for name, amount in (report.get("pendingResources") or {}).items()}


def _path(submission_id: str) -> str:
    return f"/api/jobs/{quote(submission_id, safe='')}"


def _package_path(uri: str) -> str:
    """The path of a package such as "gcs://_ray_pkg_….zip"."""
    protocol, _, name = uri.partition("://")
    return f"/api/packages/{protocol}/{quote(name, safe='')}"
