"""What steps lack on a cluster, before any of them is submitted."""

from __future__ import annotations

import asyncio

import pytest
from ray_cluster import Cluster

from marin_assets import cpu, gpu
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.missing_requirements import missing_on
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.requirements import MissingByStep, Requirements


def step(name: str, resources: Resources = cpu(), **others: tuple[str, ...]) -> Requirements:
    return Requirements(step=name, resources=resources, **others)


def look(settings: ClusterSettings, *required: Requirements) -> tuple[MissingByStep, list[str]]:
    """What they lack, and what was reported."""
    reported: list[str] = []
    return asyncio.run(missing_on(settings, required, reported.append)), reported


@pytest.mark.long
def test_what_no_node_has_now_is_awaited(cluster: Cluster) -> None:
    missing_by_step, reported = look(
        cluster.settings(), step("small", cpu(2)), step("large", cpu(64)), step("gpu", gpu())
    )
    assert sorted(missing_by_step) == ["gpu", "large"]
    [large] = missing_by_step["large"]
    assert not large.certain
    assert large.phrase == (
        f"requests 64 CPU, which no node of {cluster.address} has now: CPU 64 requested, 2 at most. "
        "It waits 600 s for such a node."
    )
    assert reported == []


def test_extras_and_packages_are_known_though_the_cluster_is_away() -> None:
    settings = ClusterSettings(address="http://127.0.0.1:1", environments={"/opt/train/bin/python": ("train",)})
    required = [
        step("a", extras=("vllm",), packages=("xml!",)),
        step("b", packages=("lxml>>5",)),
        step("c", gpu(), extras=("train",)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marin_resources.ray_tpu.cluster.missing_requirements.LOOK_TIMEOUT_S", 1.0)
        missing_by_step, reported = look(settings, *required)
    assert sorted(missing_by_step) == ["a", "b"]
    assert all(requirement.certain for missing in missing_by_step.values() for requirement in missing)
    of_extra, of_package = missing_by_step["a"]
    assert "no environment of the cluster has them all: /opt/train/bin/python has train" in of_extra.what
    assert of_package.what == "the package 'xml!', which is no requirement"
    [sentence] = reported
    assert sentence.startswith("whether http://127.0.0.1:1 has nodes for all steps is unknown: ")
