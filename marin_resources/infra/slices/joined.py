"""Which slices have joined the cluster, as its head knows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from marin_resources.clusters.cluster import Cluster
from marin_resources.ray_tpu.cluster.api.jobs_api import ApiError, RefusedError, UnreachableError, connect
from marin_resources.ray_tpu.cluster.api.token import TokenError
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

log = logging.getLogger(__name__)


def hosts_of_slices(cluster: Cluster) -> Mapping[str, int] | None:
    """Name of a slice -> its hosts that are nodes of the cluster; None if the head does not answer, which is logged."""
    settings = ClusterSettings(address=cluster.dashboard, token_secret=cluster.token_resource)

    async def ask() -> Mapping[str, int]:
        async with connect(settings) as api:
            return await api.hosts_of_slices()

    try:
        return asyncio.run(ask())
    except (UnreachableError, RefusedError, ApiError, TokenError) as error:
        log.warning("The head of %s cannot be asked which slices have joined: %s", cluster.name, error)
        return None
