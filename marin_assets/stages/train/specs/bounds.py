"""Check numbers of a config against their bounds. None is not set, and so within any."""

from __future__ import annotations

from typing import Any

from marin_assets.stages.train.errors import TrainError

SEEDS = 2**32
"""jax's random numbers have 32 bits of seed, and leave out the others."""


def require_at_least(name: str, value: Any, least: int | float, *, or_none: bool = False) -> None:
    """Raise TrainError for a number below `least`."""
    if value is not None and value < least:
        raise TrainError(f"{name} is {value!r}, expected a number of at least {least}{', or None' if or_none else ''}.")


def require_above_0(name: str, value: Any) -> None:
    """Raise TrainError for a number that is not above 0."""
    if value is not None and not value > 0:
        raise TrainError(f"{name} is {value!r}, expected a number above 0.")


def require_share(name: str, value: Any, *, with_1: bool = True) -> None:
    """Raise TrainError for a number outside of 0 to 1."""
    if value is not None and not (0 <= value <= 1 if with_1 else 0 <= value < 1):
        raise TrainError(f"{name} is {value!r}, expected a number from 0 to {'1' if with_1 else 'below 1'}.")


def require_seed(name: str, value: Any) -> None:
    """Raise TrainError for a seed that would be another one."""
    if value is not None and not 0 <= value < SEEDS:
        raise TrainError(
            f"{name} is {value!r}, expected 0 to {SEEDS - 1}: jax takes 32 bits of a seed, so this one would train as "
            f"{value % SEEDS}."
        )
