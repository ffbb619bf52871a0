"""Prepare a process that Ray has given devices, for the use of them."""

from __future__ import annotations

import os

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.settings import FAKE_VARIABLE
from marin_resources.ray_tpu.environment.devices import device_variables
from marin_resources.ray_tpu.slices.tpu_machine import prepare_for_tpu


def accelerator_variables(resources: Resources) -> dict[str, str]:
    """Prepare the machine for its devices. Return their variables: none on a host that pretends."""
    if os.environ.get(FAKE_VARIABLE):
        return {}
    if resources.tpu:
        prepare_for_tpu()
    return device_variables(resources)
