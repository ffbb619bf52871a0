"""What the steps of nodes require of the machine that runs them, and what that machine or the cluster lacks."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from marin_assets.step.graph import Node
from marin_resources.ray_tpu.backend import Backend, find_lacks
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env
from marin_resources.ray_tpu.environment.extras import met_here
from marin_resources.ray_tpu.requirements import Lack, Requirements

log = logging.getLogger(__name__)


def requirements_of(node: Node) -> Requirements:
    """The requirements of the node's step."""
    step = node.step
    return Requirements(
        step=node.name,
        extras=tuple(step.extras),
        env=tuple(step.env),
        packages=tuple(step.packages),
        resources=step.resources,
    )


def lacks_of(nodes: Iterable[Node]) -> dict[str, Lack]:
    """What the nodes, all of which are to be computed, lack where they would run now; by step name.

    Raises SettingError for an invalid cluster.
    """
    by_step = {node.name: node for node in nodes}  # of all partitions of a step, one
    required = [one for one in map(requirements_of, by_step.values()) if not one.plain]
    if not required:
        return {}
    settings = settings_from_env(None)
    if settings is None:
        required = [one for one in required if not met_here(one)]
    if not required:
        return {}
    backend = _backend(settings)
    try:
        return find_lacks(backend, required, lambda names: ())
    finally:
        backend.shutdown()


def _backend(settings: ClusterSettings | None) -> Backend:
    """The cluster's back end, or the local one. The late imports break a weight: most plans lack nothing."""
    if settings is None:
        from marin_resources.ray_tpu.local import LocalBackend

        return LocalBackend()
    from marin_resources.ray_tpu.cluster.backend import ClusterBackend

    return ClusterBackend(settings, run_id=None, report=log.warning)
