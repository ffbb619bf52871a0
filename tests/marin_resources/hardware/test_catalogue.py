"""The catalogue of accelerators, against what Ray and fray know of the same names."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest
from ray._private.accelerators import tpu as ray_tpu
from ray.util.accelerators import accelerators as ray_names

from marin_resources.configuration.settings import project_root
from marin_resources.hardware.catalogue import FILE, SliceType, find_gpu_type, find_slice_type

CATALOGUE: dict[str, Any] = tomllib.loads(FILE.read_text())
SLICES = [f"{generation}-{number}" for generation, found in CATALOGUE["tpu"].items() for number in found["slices"]]
RAY_NAMES = {value for name, value in vars(ray_names).items() if name[0].isupper() and isinstance(value, str)}


def known(kind: str) -> SliceType:
    found = find_slice_type(kind)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", SLICES)
def test_a_slice_has_the_chips_and_hosts_that_ray_gives_it(kind: str) -> None:
    found = known(kind)
    assert found.chips == ray_tpu.get_total_chips_from_accelerator_type(kind)
    assert found.chips == math.prod(map(int, found.topology.split("x")))
    assert found.chips_per_host == ray_tpu.get_num_tpu_visible_chips_per_host(kind)
    assert found.hosts * found.chips_per_host == found.chips
    assert found.ray_type in RAY_NAMES
    assert ray_tpu.infer_tpu_pod_type_from_topology(found.topology, found.ray_type) == kind


def test_every_slice_that_marin_knows_of_these_generations_is_the_same() -> None:
    fray = pytest.importorskip("fray.types")
    theirs = {each.name: each for each in fray.TPU_TOPOLOGIES}
    for kind in SLICES:
        if kind in theirs:
            found = known(kind)
            assert (found.chips, found.hosts, found.chips_per_host) == (
                theirs[kind].chip_count, theirs[kind].vm_count, theirs[kind].chips_per_vm
            )  # fmt: skip


def test_peaks_are_those_that_levanter_computes_utilization_with() -> None:
    flops = pytest.importorskip("fray.device_flops").DEVICE_FLOPS
    for generation in ("v4", "v5litepod", "v5p", "v6e"):
        assert CATALOGUE["tpu"][generation]["bf16_tflops"] * 1e12 == flops[generation]["bf16"]
    for kind in ("H100", "H200", "A100", "A100-80G"):
        found = find_gpu_type(kind)
        assert found is not None
        assert found.bf16_tflops is not None
        assert found.bf16_tflops * 1e12 == pytest.approx(flops[kind.lower()]["bf16"], rel=0.001)


def test_every_gpu_is_one_of_rays_accelerator_types() -> None:
    assert set(CATALOGUE["gpu"]) <= RAY_NAMES


def test_what_the_catalogue_has_not() -> None:
    assert find_slice_type("v4-12") is None
    assert find_gpu_type("H1") is None


def test_the_reference_page_has_every_type() -> None:
    rows = (project_root() / "docs/reference/accelerators.md").read_text().splitlines()
    for kind in SLICES:
        found = known(kind)
        facts = (found.topology, found.chips, found.hosts, found.chips_per_host, found.memory_gb, found.bf16_tflops)
        assert f"| `{kind}` | {' | '.join(map(str, facts))} |" in rows
    for kind in CATALOGUE["gpu"]:
        gpu = find_gpu_type(kind)
        assert gpu is not None
        figures = ("" if value is None else str(value) for value in (gpu.memory_gb, gpu.bf16_tflops))
        assert f"| `{kind}` | {' | '.join(figures)} |" in rows
