"""The nodes of the cluster, by Ray's head."""

from __future__ import annotations

import logging
from typing import Any

from marin_resources.ray_tpu import ray_internals

log = logging.getLogger(__name__)


def dead_nodes(ray: Any) -> frozenset[str]:
    """The ids of the nodes that are declared dead; none if the head does not answer, which is logged."""
    try:
        return frozenset(node["NodeID"] for node in ray.nodes() if not node["Alive"])
    except ray.exceptions.RayError as error:
        log.warning("Ray's head does not say which nodes are dead: %s", error)
        return frozenset()


def draining_nodes() -> frozenset[str]:
    """The ids of the nodes that Ray drains; none, and a line in the log, if its head does not answer."""
    from ray.exceptions import RayError  # late, for its weight

    try:
        return ray_internals.draining_nodes()
    except RayError as error:
        log.warning("Ray's head does not say which nodes are drained: %s", error)
        return frozenset()
