"""The plan of a step: which examples are sampled, by which weights, with which random numbers.

Examples and random numbers are a function of the config and of the step alone; with a curriculum, of the rollouts of
earlier steps too. So any sampler may sample any unit of it, in any order. In the free order a unit has the examples of
its step here, and is in the batch of any.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets.stages.train.rl.config import TrainRlConfig

EXAMPLES = 2**31
"""Numbers of examples are drawn below this. An environment with fewer takes the rest of a division."""


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """An example that is answered several times."""

    number: int
    """Position in the step."""
    lesson: str
    index: int
    """Number of the example."""
    seeds: tuple[int, ...]
    """Seeds of the random numbers, one for each answer."""


@dataclass(frozen=True, kw_only=True)
class UnitKey:
    """The identity of a unit: with it, its rollouts are a function of the config."""

    step: int
    """The step whose batch it is in, if the order is scheduled."""
    number: int
    weights_step: int
    """Number of updates that the weights have had."""


@dataclass(frozen=True, kw_only=True)
class Unit(UnitKey):
    """A part of a step that is sampled by itself."""

    groups: tuple[PlannedGroup, ...]


def weights_step_of(config: TrainRlConfig, step: int) -> int:
    """The number of updates after which the weights sample the batch of `step`."""
    return max(0, step - config.staleness)


def units_of(config: TrainRlConfig, step: int, weights: Mapping[str, float] | None = None) -> list[Unit]:
    """The units of a step in the scheduled order. `weights`: those of the lessons in this step; None: their own."""
    weights_step = weights_step_of(config, step)
    return [unit_of(config, step, number, weights_step, weights) for number in range(units_per_batch(config))]


def units_per_batch(config: TrainRlConfig) -> int:
    return config.groups // config.groups_per_unit


def unit_of(
    config: TrainRlConfig, step: int, number: int, weights_step: int, weights: Mapping[str, float] | None = None
) -> Unit:
    """The unit with a number in a step. Numbers from `units_per_batch` on are those of extra groups."""
    size = config.groups_per_unit
    if weights is None:
        weights = {name: lesson.weight for name, lesson in config.lessons.items()}
    groups = tuple(_group(config, step, group, weights) for group in range(number * size, (number + 1) * size))
    return Unit(step=step, number=number, weights_step=weights_step, groups=groups)


def _group(config: TrainRlConfig, step: int, number: int, weights: Mapping[str, float]) -> PlannedGroup:
    draw = random.Random(f"{config.seed} {step} {number}")
    names = sorted(config.lessons)
    [lesson] = draw.choices(names, [weights[name] for name in names])
    return PlannedGroup(
        number=number,
        lesson=lesson,
        index=draw.randrange(EXAMPLES),
        seeds=tuple(draw.randrange(2**62) for _ in range(config.group_size)),
    )
