"""The share of each host of a step, as bundles of a Ray placement group.

A slice is one group: Ray places all of its bundles or none, on different nodes with one slice name, bundle i on the
node with TPU worker id i. So a slice is taken whole, and no lock is needed for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources, slice_type

NODE, SLICE, WORKER, POD = "ray.io/node-id", "ray.io/tpu-slice-name", "ray.io/tpu-worker-id", "ray.io/tpu-pod-type"
"""Labels of Ray's nodes."""
ANY_OF_MODEL = 0.001
"""Amount of the resource that names a model of GPU: Ray's own way to request one."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The bundles of one slice, or of the one host of a step with GPUs."""

    bundles: tuple[dict[str, float], ...]
    selectors: tuple[dict[str, str], ...]
    """Labels of the node of each bundle."""

    def options(self) -> dict[str, Any]:
        """The arguments of `ray.util.placement_group`."""
        spread = {NODE: "STRICT_SPREAD", SLICE: "STRICT_PACK"} if len(self.bundles) > 1 else None
        where: dict[str, Any] = {"topology_strategy": spread} if spread else {"strategy": "STRICT_PACK"}
        return {"bundles": list(self.bundles), "bundle_label_selector": list(self.selectors), **where}


def group_of(resources: Resources, avoid: Collection[str] = ()) -> Group:
    """The bundles of one slice of a step with these resources, on none of the nodes `avoid` (their ids)."""
    away = {NODE: f"!in({','.join(sorted(avoid))})"} if avoid else {}
    host = host_bundle(resources)
    if resources.tpu is None:
        model = resources.gpu.kind if resources.gpu else None
        named = {f"accelerator_type:{model}": ANY_OF_MODEL} if model else {}
        return Group(bundles=({**host, **named},), selectors=(away,))
    kind = slice_type(resources.tpu.kind)
    head = {f"TPU-{kind.kind}-head": 1.0, **host}
    bundles = (head, *[host] * (kind.hosts - 1))
    if kind.hosts == 1:
        return Group(bundles=bundles, selectors=(away,))
    return Group(bundles=bundles, selectors=tuple({WORKER: str(i), POD: kind.kind, **away} for i in range(kind.hosts)))


def host_bundle(resources: Resources) -> dict[str, float]:
    """The bundle of one host: CPUs, memory, and all chips of a TPU host or the GPUs."""
    bundle: dict[str, float] = {"CPU": resources.cpus}
    if resources.memory_bytes:
        bundle["memory"] = resources.memory_bytes
    if resources.gpu:
        bundle["GPU"] = resources.gpu.count
    if resources.tpu:
        bundle["TPU"] = slice_type(resources.tpu.kind).chips_per_host
    return bundle


def task_options(resources: Resources) -> dict[str, Any]:
    """The bundle of one host as options of the Ray task that takes it."""
    bundle = host_bundle(resources)
    options: dict[str, Any] = {"num_cpus": bundle.pop("CPU")}
    if "memory" in bundle:
        options["memory"] = bundle.pop("memory")
    if "GPU" in bundle:
        options["num_gpus"] = bundle.pop("GPU")
    return {**options, "resources": bundle} if bundle else options
