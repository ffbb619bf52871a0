"""The nodes that a cluster has and may get, for steps that wait: could one of them hold what a step requests?"""

from __future__ import annotations

from collections.abc import Mapping

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.api.jobs_api import connect
from marin_resources.ray_tpu.cluster.monitor.shared_read import SharedRead
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.ray_options import shortcomings

MAX_AGE_S = 2.0
"""Each read is a request to the head."""


class Nodes:
    """The nodes of one cluster, at most 2 s old."""

    def __init__(self, settings: ClusterSettings, retry: RetryWhileUnreachable) -> None:
        self._settings, self._retry = settings, retry
        self._alive = SharedRead(self._read_alive)
        self._coming = SharedRead(self._read_coming)

    async def shortcomings(self, resources: Resources) -> str:
        """Return what no node has as a phrase.

        Empty if a node has all of it, the autoscaler may add such a node by the settings, or starts one now.
        """
        nodes = [*await self._alive.get(MAX_AGE_S), *self._settings.node_types]
        short = shortcomings(resources, nodes)
        if short and not shortcomings(resources, [await self._coming.get(MAX_AGE_S)]):
            return ""
        return short

    async def _read_alive(self) -> list[Mapping[str, float]]:
        async with connect(self._settings) as api:
            return await self._retry.call(api.node_resources)

    async def _read_coming(self) -> Mapping[str, float]:
        async with connect(self._settings) as api:
            return await self._retry.call(api.coming_resources)
