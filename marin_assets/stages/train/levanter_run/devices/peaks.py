"""The devices of a training. Their peak is by the catalogue where Levanter's table has none or a wrong one: `mfu` is a
share of it."""

from __future__ import annotations

from typing import Any

import jax
from fray.device_flops import DEVICE_FLOPS, device_flops_for_jax_device

from marin_resources.hardware.catalogue import find_gpu_type

FROM_THE_CATALOGUE = {
    "l4": "L4",  # Levanter's is that with structured sparsity: twice the peak, so half the share
    "nvidia b200": "B200",  # it has none
}
"""Levanter's name of a device -> the catalogue's. Of a device that it does not know, Levanter's is jax's in small
letters."""


def correct_peaks() -> None:
    """Put the catalogue's peaks into the table, for this process."""
    for name, kind in FROM_THE_CATALOGUE.items():
        gpu = find_gpu_type(kind)
        assert gpu is not None
        assert gpu.bf16_tflops is not None
        DEVICE_FLOPS[name] = {**DEVICE_FLOPS.get(name, {}), "bf16": gpu.bf16_tflops * 1e12}


def devices_of_jax() -> dict[str, Any]:
    """Return kind (jax's name), count and peak_flops (of one device, in operations a second; None where it is not
    known) of the devices that jax has. A TPU's device is a chip, but of v2 and v3 a core, of which a chip has two."""
    devices = jax.devices()
    kind = devices[0].device_kind
    return {"kind": kind, "count": len(devices), "peak_flops": device_flops_for_jax_device(kind)}
