"""Resources as options of Ray, and whether any node can meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_resources.hardware.resources import GIB, Resources
from marin_resources.ray_tpu.requirements import MissingRequirement
from marin_resources.types.errors import MarinError


class UnmeetableError(MarinError):
    """No node has the resources that the step requests: one sentence."""


class RayGoneError(UnmeetableError):
    """No Ray runs on this machine: one sentence. The step is not at fault, and its run is to be repeated."""


def ray_options(resources: Resources) -> dict[str, Any]:
    """Return options for `ray.remote(...).options(**…)`."""
    options: dict[str, Any] = {"num_cpus": resources.cpus}
    if resources.memory_bytes:
        options["memory"] = resources.memory_bytes
    if resources.gpu:
        options["num_gpus"] = resources.gpu.count
        if resources.gpu.kind:
            options["accelerator_type"] = resources.gpu.kind
    if resources.tpu:
        options["resources"] = {f"TPU-{resources.tpu.kind}-head": 1}
    return options


def alive_nodes(ray: Any) -> list[Mapping[str, float]]:
    """Return the resources of each node of the connected Ray that is alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def refuse_unmeetable(subject: str, resources: Resources, nodes: list[Mapping[str, float]]) -> None:
    """Raise UnmeetableError, with `subject` and the largest amounts, if no single node has the requested resources."""
    if requirement := missing_on_node(resources, nodes):
        raise UnmeetableError(f"{subject} {requirement.phrase}")


def missing_on_node(resources: Resources, nodes: Sequence[Mapping[str, float]]) -> MissingRequirement | None:
    """Return the part of the requested resources that no single node has; None if a node has them all."""
    short = shortcomings(resources, nodes)
    if not short:
        return None
    return MissingRequirement(
        verb="requests",
        what=f"{resources.describe()}, which no node here has: {short}",
        remedy="Request less, or run on larger nodes.",
    )


def shortcomings(resources: Resources, nodes: Sequence[Mapping[str, float]]) -> str:
    """Return requested and largest amounts as a phrase; an empty one if a single node has all that is requested."""
    requested = {"CPU": resources.cpus, "memory": resources.memory_bytes or 0}
    if resources.gpu:
        requested["GPU"] = resources.gpu.count
        if resources.gpu.kind:
            requested[f"accelerator_type:{resources.gpu.kind}"] = 0.001
    if resources.tpu:
        requested[f"TPU-{resources.tpu.kind}-head"] = 1
    if any(all(node.get(key, 0) >= amount for key, amount in requested.items()) for node in nodes):
        return ""
    most = {key: max((node.get(key, 0) for node in nodes), default=0) for key in requested}
    short = [_phrase(key, requested[key], most[key]) for key in requested if most[key] < requested[key]]
    return ", ".join(short) or "not on one node"


def _phrase(key: str, requested: float, most: float) -> str:
    if key == "memory":
        return f"memory {requested / GIB:.1f} GiB requested, {most / GIB:.1f} GiB at most"
    return f"{key} {requested:g} requested, {most:g} at most"
