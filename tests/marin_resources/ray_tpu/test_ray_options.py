from __future__ import annotations

import pytest

from marin_resources.hardware.resources import GIB, Resources, cpu, gpu, tpu
from marin_resources.ray_tpu.ray_options import UnmeetableError, ray_options, refuse_unmeetable


@pytest.mark.parametrize(
    ("resources", "options"),
    [
        (cpu(), {"num_cpus": 1}),
        (cpu(0.5, memory_gib=2), {"num_cpus": 0.5, "memory": 2 * GIB}),
        (gpu(count=2), {"num_cpus": 1, "num_gpus": 2}),
        (gpu("H100"), {"num_cpus": 1, "num_gpus": 1, "accelerator_type": "H100"}),
        (tpu("v5p-32"), {"num_cpus": 1, "resources": {"TPU-v5p-32-head": 1}}),
    ],
)
def test_resources_become_options_of_ray(resources: Resources, options: dict[str, object]) -> None:
    assert ray_options(resources) == options


SMALL = {"CPU": 2.0, "memory": 4.0 * GIB}
LARGE = {"CPU": 64.0, "memory": 256.0 * GIB, "GPU": 8.0, "accelerator_type:H100": 1.0}
POD = {"CPU": 8.0, "memory": 64.0 * GIB, "TPU": 4.0, "TPU-v5p-32-head": 1.0}


@pytest.mark.parametrize(
    "resources", [cpu(64), cpu(2, memory_gib=4), gpu(count=8), gpu("H100", cpus=64), tpu("v5p-32", cpus=8)]
)
def test_what_some_node_has_is_not_refused(resources: Resources) -> None:
    refuse_unmeetable("Step 'a'", resources, [SMALL, LARGE, POD])


@pytest.mark.parametrize(
    ("resources", "nodes", "sentence"),
    [
        (cpu(4), [SMALL], "Step 'a' requests 4 CPU, which no node here has: CPU 4 requested, 2 at most"),
        (cpu(1, memory_gib=5), [SMALL], "memory 5.0 GiB requested, 4.0 GiB at most"),
        (gpu(count=9), [SMALL, LARGE], "GPU 9 requested, 8 at most"),
        (gpu("A100"), [LARGE], "accelerator_type:A100"),
        (tpu("v4-8"), [POD], "TPU-v4-8-head 1 requested, 0 at most"),
        (gpu(cpus=100), [{"CPU": 200}, LARGE], "not on one node"),
        (cpu(1), [], "CPU 1 requested, 0 at most"),
    ],
)
def test_what_no_node_has_is_refused_with_the_most_there_is(
    resources: Resources, nodes: list[dict[str, float]], sentence: str
) -> None:
    with pytest.raises(UnmeetableError) as caught:
        refuse_unmeetable("Step 'a'", resources, nodes)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith("Request less, or run on larger nodes.")
