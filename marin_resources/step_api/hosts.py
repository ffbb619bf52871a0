"""The hosts of a slice, for a step's function: it is called on each of them at once, and reads here which one it is on.

A step with `cpu()`, or on one host, has one host, with index 0 and without a coordinator. The result of host 0 is the
step's result. All hosts write below the one output path: let each write files of its own, or host 0 alone.
"""

from __future__ import annotations

import os

INDEX, COUNT, COORDINATOR = "MARIN_HOST_INDEX", "MARIN_HOST_COUNT", "MARIN_COORDINATOR"
ACCELERATOR = "MARIN_ACCELERATOR"
"""The platform of jax that a function must find on its host: "tpu" or "gpu". Not set where any will do."""
SLICE_INDEX, SLICE_COUNT = "MARIN_SLICE_INDEX", "MARIN_SLICE_COUNT"


def host_index() -> int:
    """The index of this host: 0 to `host_count() - 1`. The hosts of a slice follow each other, by TPU worker id."""
    return int(os.environ.get(INDEX, 0))


def host_count() -> int:
    """The number of hosts that run the function at once, in all slices."""
    return int(os.environ.get(COUNT, 1))


def coordinator_address() -> str | None:
    """Address and free port of host 0, "10.0.0.2:40123", for `jax.distributed`; None on one host."""
    return os.environ.get(COORDINATOR)


def slice_index() -> int:
    """The index of this host's slice: 0 to `slice_count() - 1`."""
    return int(os.environ.get(SLICE_INDEX, 0))


def slice_count() -> int:
    """The number of slices that run the function."""
    return int(os.environ.get(SLICE_COUNT, 1))


def missing_accelerator(platform: str, device: str) -> str | None:
    """A sentence if the step requests another platform than the one that jax found here; None if it found that.

    `platform` is jax.default_backend(), `device` the kind of its first device. jax takes the CPU where a driver or its
    own package for the device is missing, and only logs a warning.
    """
    requested = os.environ.get(ACCELERATOR)
    if not requested or requested == platform:
        return None
    name = requested.upper()
    return (
        f"The step requests a {name}, and jax finds only {device!r} on this host. Check that the environment of the "
        f"nodes has jax for {name}, and that no other process holds the devices."
    )
