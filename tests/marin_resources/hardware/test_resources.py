from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from marin_resources.hardware.resources import GIB, Gpu, ResourceError, Resources, Tpu, cpu, gpu, tpu
from marin_resources.wire.config_json import decode, encode


def test_resources_are_described_in_one_phrase() -> None:
    assert cpu().describe() == "1 CPU"
    assert cpu(0.5, memory_gib=1.5).describe() == "0.5 CPU, 1.5 GiB memory"
    assert gpu(count=2).describe() == "1 CPU, 2 GPU"
    assert gpu("H100", cpus=8).describe() == "8 CPU, 1 H100 GPU"
    assert tpu("v5p-32", slices=2).describe() == "1 CPU, 2 slice(s) of TPU v5p-32"
    assert tpu("v5p-32", slices=(1, 2, 4)).describe() == "1 CPU, 1 or 2 or 4 slice(s) of TPU v5p-32"


def test_memory_is_given_in_gib_and_stored_in_bytes() -> None:
    assert cpu(memory_gib=2).memory_bytes == 2 * GIB
    assert cpu().memory_bytes is None


def test_gpu_and_tpu_fill_in_their_parts() -> None:
    assert gpu("A100", 2) == Resources(gpu=Gpu(count=2, kind="A100"))
    assert tpu("v4-8", slices=3) == Resources(tpu=Tpu(kind="v4-8"), slices=3)
    assert tpu("v4-8", slices=[4, 1, 2]) == Resources(tpu=Tpu(kind="v4-8"), slices=1, more_slices=(2, 4))
    assert decode(encode(tpu("v4-8", slices=(1, 2)))) == tpu("v4-8", slices=(1, 2))


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "2", True, None], ids=repr)
def test_a_value_that_is_not_positive_is_refused_in_one_sentence(value: Any) -> None:
    with pytest.raises(ResourceError, match=r"Resources got cpus=.* expected a positive number"):
        cpu(value)
    with pytest.raises(ResourceError, match=r"Resources got slices=.* expected a positive number"):
        tpu("v4-8", slices=value)
    with pytest.raises(ResourceError, match=r"Resources got gpu count=.* expected a positive number"):
        gpu(count=value)


@pytest.mark.parametrize("value", [(), (1, 0), (1, "2"), (True, 2), 1.5], ids=repr)
def test_numbers_of_slices_that_are_none_are_refused(value: Any) -> None:
    with pytest.raises(ResourceError, match=r"Resources got slices=.* expected a positive number of whole slices, or"):
        tpu("v4-8", slices=value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "2", True], ids=repr)
def test_memory_that_is_no_positive_number_is_refused(value: Any) -> None:
    with pytest.raises(ResourceError, match=r"Resources got memory_gib=.* expected a positive number"):
        cpu(memory_gib=value)


def test_steps_with_one_kind_of_device_are_in_one_pool() -> None:
    assert cpu(8).pool is None
    assert (gpu(count=2).pool, gpu("H100").pool, tpu("v5p-32", slices=2).pool) == ("gpu", "gpu_H100", "tpu_v5p_32")


@pytest.mark.parametrize(
    ("kind", "chips"), {"v2-8": 4, "v4-16": 8, "v5p-32": 16, "v5litepod-16": 16, "v6e-8": 8}.items()
)
def test_chips_of_a_slice(kind: str, chips: int) -> None:
    assert tpu(kind, slices=3).devices == 3 * chips


def test_another_name_of_a_type_is_the_same_type() -> None:
    assert tpu("v5e-16") == tpu("v5litepod-16")
    assert tpu("v5e-16").pool == "tpu_v5litepod_16"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tpu("v4-15"), "has no TPU 'v4-15'; near it are 'v4-8', 'v4-16', 'v4-32'. Correct the name."),
        (lambda: tpu("V5P-32"), "has no TPU 'V5P-32'; near it are 'v5p-16', 'v5p-32', 'v5p-64'."),
        (lambda: tpu("v4"), "has no TPU 'v4'; near it are 'v4-8', 'v4-16', 'v4-32'."),
        (lambda: tpu("v9-8"), "has no TPU 'v9-8'; near it are"),
        (lambda: tpu(""), "has no TPU ''; near it are 'v2-8'"),
        (lambda: tpu(8), r"tpu() got kind=8, expected a name: tpu('v5p-32')."),  # type: ignore[arg-type]
        (lambda: gpu("H1000"), "has no GPU 'H1000'; near it are 'H100'"),
        (lambda: gpu("h100"), "has no GPU 'h100'; near it are 'H100'"),
        (lambda: gpu(8), "gpu() got kind=8, expected a name: gpu('H100', 8), or gpu(count=8) of any model."),  # type: ignore[arg-type]
    ],
)
def test_an_unknown_type_is_refused_with_those_near_it(make: Callable[[], Resources], sentence: str) -> None:
    with pytest.raises(ResourceError) as refused:
        make()
    assert sentence in str(refused.value)


def test_devices_are_gpus_or_chips() -> None:
    assert (cpu(8).devices, gpu(count=2).devices, gpu("H100", 8).devices) == (0, 2, 8)
