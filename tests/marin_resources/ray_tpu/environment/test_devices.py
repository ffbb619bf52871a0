"""Variables of a process for the devices of its step."""

from __future__ import annotations

import pytest

from marin_resources.hardware.resources import cpu, gpu, tpu
from marin_resources.ray_tpu.environment.devices import MEMORY_FRACTION, OLD_MEMORY_FRACTION, device_variables
from marin_resources.step_api.hosts import ACCELERATOR


def test_a_step_names_the_device_that_jax_must_find() -> None:
    assert device_variables(cpu(4), {}) == {}
    assert device_variables(tpu("v4-8"), {}) == {ACCELERATOR: "tpu"}
    assert device_variables(gpu(), {})[ACCELERATOR] == device_variables(gpu("H100", 8), {})[ACCELERATOR] == "gpu"


@pytest.mark.parametrize("name", [MEMORY_FRACTION, OLD_MEMORY_FRACTION])
def test_a_share_of_the_memory_that_a_person_has_set_stays(name: str) -> None:
    assert device_variables(gpu(), {name: "0.5"}) == {ACCELERATOR: "gpu"}


def test_jax_takes_nine_tenths_of_the_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxlib.xla_client import generate_pjrt_gpu_plugin_options

    for name in (MEMORY_FRACTION, OLD_MEMORY_FRACTION):
        monkeypatch.delenv(name, raising=False)
    for name, value in device_variables(gpu()).items():
        monkeypatch.setenv(name, value)
    assert generate_pjrt_gpu_plugin_options()["memory_fraction"] == 0.9
