"""The environments that steps request."""

from __future__ import annotations

from marin_assets.step.values import ConfigError
from marin_resources.hardware.resources import Resources


def extras_on(resources: Resources | None, *extras: str) -> tuple[str, ...]:
    """The extras, and JAX for the device: JAX without it would compute on the CPU, and let the device idle.

    Raises ConfigError for resources of another class, such as Marin's.
    """
    if resources is not None and not isinstance(resources, Resources):
        raise ConfigError(f"resources is {resources!r}, expected cpu(4), gpu('H100', 8) or tpu('v4-128', slices=2).")
    if resources is not None and resources.gpu is not None:
        return (*extras, "gpu")
    return (*extras, "tpu") if resources is not None and resources.tpu is not None else extras
