"""The environments that steps request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError
from marin_resources.hardware.resources import Resources


def curated(
    name: str,
    fn: Callable[[Any], Any],
    config: Any,
    *,
    unaccounted: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
    extras: Sequence[str] = ("curate",),
) -> Step:
    """Return a step of documents: with its extras, and continued where it was killed.

    `unaccounted` is a count of its result that must be 0.
    """
    zero = () if unaccounted is None else (expect(unaccounted, at_least=0, at_most=0),)
    return Step(
        name=name,
        fn=fn,
        config=config,
        extras=extras,
        resumable=True,
        expectations=(*zero, *expectations),
        partitions=partitions,
    )


def extras_on(resources: Resources | None, *extras: str) -> tuple[str, ...]:
    """The extras, and JAX for the device: JAX without it would compute on the CPU, and let the device idle.

    Raises ConfigError for resources of another class, such as Marin's.
    """
    if resources is not None and not isinstance(resources, Resources):
        raise ConfigError(f"resources is {resources!r}, expected cpu(4), gpu('H100', 8) or tpu('v4-128', slices=2).")
    if resources is not None and resources.gpu is not None:
        return (*extras, "gpu")
    return (*extras, "tpu") if resources is not None and resources.tpu is not None else extras
