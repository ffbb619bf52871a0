from __future__ import annotations

from typing import Any

import pytest

from marin_resources.hardware.resources import Resources, gpu, tpu
from marin_resources.ray_tpu.slices.bad_hosts import avoidable
from marin_resources.ray_tpu.slices.bundles import POD, SLICE


def tpu_node(name: str, of: str, alive: bool = True) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "Labels": {POD: "v4-16", SLICE: of}, "Resources": {"TPU": 4}}


def gpu_node(name: str, gpus: int) -> dict[str, Any]:
    return {"NodeID": name, "Alive": True, "Labels": {}, "Resources": {"GPU": gpus}}


TWO_SLICES = [tpu_node("a0", "a"), tpu_node("a1", "a"), tpu_node("b0", "b"), tpu_node("b1", "b")]


@pytest.mark.parametrize(
    ("resources", "nodes", "bad", "avoided"),
    [
        (tpu("v4-16"), TWO_SLICES, {"a1"}, {"a1"}),
        (tpu("v4-16"), TWO_SLICES, {"a1", "b0"}, set()),  # no other slice is whole
        (tpu("v4-16", slices=2), TWO_SLICES, {"a1"}, set()),
        (tpu("v4-16"), TWO_SLICES[:2], {"a1"}, set()),
        (tpu("v4-16"), [*TWO_SLICES[:3], tpu_node("b1", "b", alive=False)], {"a1"}, set()),
        (tpu("v4-16"), TWO_SLICES, {"gone"}, set()),
        (gpu(count=2), [gpu_node("g", 2), gpu_node("h", 2)], {"g"}, {"g"}),
        (gpu(count=2), [gpu_node("g", 2), gpu_node("h", 1)], {"g"}, set()),
    ],
)
def test_a_bad_host_is_avoided_if_there_is_another(
    resources: Resources, nodes: list[dict[str, Any]], bad: set[str], avoided: set[str]
) -> None:
    assert avoidable(resources, nodes, bad) == avoided
