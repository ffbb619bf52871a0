"""The slices that have joined the cluster, and those in use, as its head reports them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.slices.decide import DRAIN_TIMEOUT_S
from marin_resources.ray_tpu.cluster.api.jobs_api import ApiError, JobsApi, RefusedError, UnreachableError, connect
from marin_resources.ray_tpu.cluster.api.token import TokenError
from marin_resources.ray_tpu.cluster.on_head.drain import drain_slices
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

T = TypeVar("T")
log = logging.getLogger(__name__)


def hosts_of_slices(cluster: Cluster) -> Mapping[str, int] | None:
    """Name of a slice -> its hosts that are nodes of the cluster; None, and a line in the log, if no head answers."""
    return _request(cluster, "which slices have joined", lambda api: api.hosts_of_slices())


def drain(cluster: Cluster, names: Sequence[str]) -> Collection[str] | None:
    """Drain the slices: their steps leave, and none begins there. Return those in use; None, and a line in the log, if
    the head does not answer."""

    async def request(api: JobsApi) -> Collection[str]:
        return (await drain_slices(api, names, DRAIN_TIMEOUT_S)).used & set(names)

    return _request(cluster, "to drain slices", request)


def _request(cluster: Cluster, purpose: str, request: Callable[[JobsApi], Awaitable[T]]) -> T | None:
    settings = ClusterSettings(address=cluster.dashboard, token_secret=cluster.token_resource)

    async def connected() -> T:
        async with connect(settings) as api:
            return await request(api)

    try:
        return asyncio.run(connected())
    except (UnreachableError, RefusedError, ApiError, TokenError) as error:
        log.warning("The head of %s cannot be asked %s: %s", cluster.name, purpose, error)
        return None
