"""Variables of a process for the devices of its step: what jax must find, and how much of a GPU's memory it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping

from marin_resources.hardware.resources import Resources
from marin_resources.step_api.hosts import ACCELERATOR

MEMORY_FRACTION = "XLA_CLIENT_MEM_FRACTION"
"""jax's variable: the share of a GPU's memory that a process takes when it first uses it, and never exceeds."""
OLD_MEMORY_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
"""The earlier name of that. jax refuses both together."""
OF_A_GPU = "0.9"
"""jax's default is 0.75, for a GPU with other users. A step has its GPUs alone. The rest is for CUDA's context and for
NCCL's buffers between GPUs, which are not jax's."""


def device_variables(resources: Resources, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a step with these resources needs beside those of `environ`; none without devices."""
    if resources.tpu is not None:
        return {ACCELERATOR: "tpu"}
    if resources.gpu is None:
        return {}
    is_set = bool(environ.get(MEMORY_FRACTION) or environ.get(OLD_MEMORY_FRACTION))
    return {ACCELERATOR: "gpu"} | ({} if is_set else {MEMORY_FRACTION: OF_A_GPU})
