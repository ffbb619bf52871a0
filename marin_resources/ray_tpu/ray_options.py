"""Resources in Ray's words, and whether any node could meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_resources.hardware import GIB, Resources


class UnmeetableError(RuntimeError):
    """No node has the resources that the step asks for: one sentence."""


def ray_options(resources: Resources) -> dict[str, Any]:
    """Options for `ray.remote(...).options(**…)`."""
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


def refuse_unmeetable(who: str, resources: Resources, nodes: list[Mapping[str, float]]) -> None:
    """Raise UnmeetableError, naming `who` and the largest there is, if no single node has what is asked."""
    if short := shortcomings(resources, nodes):
        raise UnmeetableError(
            f"{who} asks for {resources.describe()}, which no node here has: {short}. "
            "Ask for less, or run where there is more."
        )


def shortcomings(resources: Resources, nodes: Sequence[Mapping[str, float]]) -> str:
    """What is asked and what the largest node has, as a phrase; nothing if a single node has all that is asked."""
    wanted = {"CPU": resources.cpus, "memory": resources.memory_bytes or 0}
    if resources.gpu:
        wanted["GPU"] = resources.gpu.count
        if resources.gpu.kind:
            wanted[f"accelerator_type:{resources.gpu.kind}"] = 0.001
    if resources.tpu:
        wanted[f"TPU-{resources.tpu.kind}-head"] = 1
    if any(all(node.get(key, 0) >= amount for key, amount in wanted.items()) for node in nodes):
        return ""
    most = {key: max((node.get(key, 0) for node in nodes), default=0) for key in wanted}
    short = [_phrase(key, wanted[key], most[key]) for key in wanted if most[key] < wanted[key]]
    return ", ".join(short) or "not on one node"


def _phrase(key: str, wanted: float, most: float) -> str:
    if key == "memory":
        return f"memory {wanted / GIB:.1f} GiB asked, {most / GIB:.1f} GiB at most"
    return f"{key} {wanted:g} asked, {most:g} at most"
