from __future__ import annotations

from marin_resources.hardware.resources import cpu, gpu, tpu
from marin_resources.ray_tpu.slices.bundles import NODE, POD, SLICE, WORKER, group_of, task_options


def test_a_slice_is_one_group_with_a_bundle_for_each_host_in_the_order_of_their_ids() -> None:
    options = group_of(tpu("v4-16", cpus=8, memory_gib=1)).options()
    host = {"CPU": 8, "memory": 1024**3, "TPU": 4}
    assert options["bundles"] == [{"TPU-v4-16-head": 1, **host}, host]
    assert options["bundle_label_selector"] == [{WORKER: "0", POD: "v4-16"}, {WORKER: "1", POD: "v4-16"}]
    assert options["topology_strategy"] == {NODE: "STRICT_SPREAD", SLICE: "STRICT_PACK"}


def test_one_host_needs_no_labels() -> None:
    slice_of_one = group_of(tpu("v4-8")).options()
    assert slice_of_one == {
        "bundles": [{"TPU-v4-8-head": 1, "CPU": 1, "TPU": 4}],
        "bundle_label_selector": [{}],
        "strategy": "STRICT_PACK",
    }
    assert group_of(gpu("H100", 8, cpus=16)).bundles == ({"CPU": 16, "GPU": 8, "accelerator_type:H100": 0.001},)
    assert group_of(cpu(2)).bundles == ({"CPU": 2},)


def test_a_node_that_is_avoided_is_so_by_each_bundle() -> None:
    for resources in (tpu("v4-16"), tpu("v4-8"), gpu()):
        selectors = group_of(resources, {"b", "a"}).selectors
        assert {selector[NODE] for selector in selectors} == {"!in(a,b)"}


def test_a_task_takes_what_its_bundle_has() -> None:
    assert task_options(tpu("v4-16", cpus=8)) == {"num_cpus": 8, "resources": {"TPU": 4}}
    assert task_options(gpu(count=2, memory_gib=1)) == {"num_cpus": 1, "memory": 1024**3, "num_gpus": 2}
