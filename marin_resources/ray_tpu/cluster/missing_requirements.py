"""The lacks of steps on a cluster: an environment with their extras, and a node with their resources.

The variables that they name are looked up on the nodes, and their packages are installed there: neither is known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from marin_resources.ray_tpu.cluster.code.python import missing_in_python
from marin_resources.ray_tpu.cluster.errors import ClusterError, UnreachableError
from marin_resources.ray_tpu.cluster.monitor.nodes import Nodes
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.environment.packages import invalid_packages
from marin_resources.ray_tpu.requirements import MissingByStep, MissingRequirement, Requirements, merge_missing

LOOK_TIMEOUT_S = 10.0


def known_missing(required: Requirements, settings: ClusterSettings) -> tuple[MissingRequirement, ...]:
    """Return what the settings alone show: extras that no environment has, and packages that are no requirements."""
    return (*missing_in_python(required.extras, settings), *invalid_packages(required.packages).values())


async def missing_on(
    settings: ClusterSettings, required: Sequence[Requirements], report: Callable[[str], None]
) -> MissingByStep:
    """Return all that the steps lack on the cluster, by step name; `report` takes a sentence if its nodes are unknown.

    A lack of nodes is not certain: a step waits `start_timeout_s` for a node.
    """
    certain = merge_missing({requirements.step: known_missing(requirements, settings) for requirements in required})
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            nodes = Nodes(settings, RetryWhileUnreachable(settings.address, LOOK_TIMEOUT_S, lambda sentence: None))
            short = {requirements.step: await nodes.shortcomings(requirements.resources) for requirements in required}
    except (TimeoutError, UnreachableError, ClusterError) as error:
        why = str(error) or f"no answer within {LOOK_TIMEOUT_S:g} s"
        report(f"whether {settings.address} has nodes for all steps is unknown: {why}")
        return certain
    of_nodes = {
        requirements.step: (
            MissingRequirement(
                verb="requests",
                what=f"{requirements.resources.describe()}, which no node of {settings.address} has now: {phrase}",
                remedy=f"It waits {settings.start_timeout_s:g} s for such a node.",
                certain=False,
            ),
        )
        for requirements in required
        if (phrase := short.get(requirements.step))
    }
    return merge_missing(certain, of_nodes)
