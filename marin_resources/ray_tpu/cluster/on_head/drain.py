"""Drain the hosts of slices: what Ray, a cloud and an autoscaler do before a host goes away.

Ray places nothing on a drained host any more. The steps that run there save and continue elsewhere; a host on which
nothing runs ends by itself. What makes no checkpoint runs until it ends: nothing is killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.on_head.program import run_on_head, with_functions
from marin_resources.ray_tpu.ray_internals import drain_node, free_resources

CODE = with_functions(
    """
import json, sys, time
import ray

wanted, notice_s = json.loads(sys.argv[1]), float(sys.argv[2])
ray.init(log_to_driver=False)
free = free_resources()

def is_used(node):
    # Ray leaves a resource out of which nothing is free
    names = [name for name in node["Resources"] if name in ("CPU", "GPU", "TPU")]
    return any(free.get(node["NodeID"], {}).get(name, 0) < node["Resources"][name] for name in names)

slices = {}
for node in ray.nodes():
    if node["Alive"] and "ray.io/tpu-slice-name" in node["Labels"]:
        slices.setdefault(node["Labels"]["ray.io/tpu-slice-name"], []).append(node)
for name in wanted:
    for node in slices.get(name, []):
        drain_node(node["NodeID"], notice_s, "marin cluster")
hosts = {name: len(nodes) for name, nodes in slices.items()}
used = sorted(name for name, nodes in slices.items() if any(map(is_used, nodes)))
print("MARIN", json.dumps({"hosts": hosts, "used": used}))
""",
    drain_node,
    free_resources,
)


@dataclass(frozen=True, kw_only=True)
class Drained:
    """The state of the slices when they were drained."""

    hosts: Mapping[str, int]
    """Name of each slice -> its hosts that are alive."""
    used: frozenset[str]
    """The slices of which a step, or another task, holds something."""


async def drain_slices(api: JobsApi, names: Sequence[str], notice_s: float, user: str | None = None) -> Drained:
    """Drain the slices that are up. `notice_s`: the announced time until their hosts end. Raises as the API."""
    state = await run_on_head(api, "drain", CODE, json.dumps(list(names)), str(notice_s), user=user)
    return Drained(hosts=state["hosts"], used=frozenset(state["used"]))
