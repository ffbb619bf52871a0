"""The environments that steps request."""

from __future__ import annotations

from marin_resources.hardware.resources import Resources


def extras_on(resources: Resources | None, *extras: str) -> tuple[str, ...]:
    """The extras, and JAX for the device: JAX without it would compute on the CPU, and let the device idle."""
    if resources is not None and resources.gpu is not None:
        return (*extras, "gpu")
    return (*extras, "tpu") if resources is not None and resources.tpu is not None else extras
