"""Hosts that could not use their devices: for a while, no step of the cluster is placed on them.

They are kept in the key-value store of Ray's head, until that restarts. A host of a slice is known by the slice and its
worker, as its node has another id when its raylet was started again. `marin cluster bad-hosts` lists and lifts them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from marin_resources.hardware.resources import Resources, slice_type
from marin_resources.ray_tpu.ray_internals import kv_get, kv_keys, kv_put
from marin_resources.ray_tpu.slices.bundles import POD, SLICE, WORKER

AVOIDED_S = 1800.0
"""A process that still holds a chip ends within minutes; a host that is broken is replaced by its cloud."""
NAMESPACE = b"marin"
PREFIX = b"bad-host/"


def report_bad_host(host: str, why: str, step: str) -> None:
    """Let the steps of this cluster avoid the host (`host_key`) for half an hour."""
    entry = json.dumps({"at_s": time.time(), "why": why, "step": step}).encode()
    kv_put(PREFIX + host.encode(), entry, NAMESPACE)


def host_key(node_id: str, slice_name: str | None, worker: str | int | None) -> str:
    """The name of a host: its slice and worker, or the id of its node if it is no TPU's."""
    return f"{slice_name}/{worker or 0}" if slice_name else node_id


def key_of_node(node: Mapping[str, Any]) -> str:
    """The name of a host, from its node as `ray.nodes()` returns it."""
    return host_key(node["NodeID"], node["Labels"].get(SLICE), node["Labels"].get(WORKER))


def bad_hosts() -> dict[str, str]:
    """Name of the host -> why it is avoided now."""
    reasons = {}
    for key in kv_keys(PREFIX, NAMESPACE):
        data = kv_get(key, NAMESPACE)
        entry: dict[str, Any] = json.loads(data) if data else {"at_s": 0.0}
        if time.time() - entry["at_s"] < AVOIDED_S:
            reasons[key[len(PREFIX) :].decode()] = entry["why"]
    return reasons


def avoidable(resources: Resources, nodes: Sequence[Mapping[str, Any]], bad: Collection[str]) -> frozenset[str]:
    """Those of the bad nodes that the step can do without: if no other host or whole slice is up, it takes them.

    `nodes` as `ray.nodes()` returns them.
    """
    alive = [node for node in nodes if node["Alive"]]
    bad_here = frozenset(bad) & {node["NodeID"] for node in alive}
    good = [node for node in alive if node["NodeID"] not in bad_here]
    if resources.tpu is None:
        gpus = resources.gpu.count if resources.gpu else 0
        return bad_here if any(node["Resources"].get("GPU", 0) >= gpus for node in good) else frozenset()
    kind = slice_type(resources.tpu.kind)
    hosts: dict[str, int] = {}
    for node in good:
        if node["Labels"].get(POD) == kind.kind:
            name = node["Labels"].get(SLICE, "")
            hosts[name] = hosts.get(name, 0) + 1
    whole = sum(count == kind.hosts for count in hosts.values())
    return bad_here if whole >= resources.slices else frozenset()
