"""The order of a training: it publishes weights, has rollouts sampled with them, and gives each step its batch."""

from __future__ import annotations

from typing import Any, Protocol

from marin_assets.stages.train.rl.config import FREE, TrainRlConfig
from marin_assets.stages.train.rl.curriculum.progress import LessonProgress
from marin_assets.stages.train.rl.orders.free import FreeOrder
from marin_assets.stages.train.rl.orders.replay import ReplayedOrder
from marin_assets.stages.train.rl.orders.schedule import ScheduledOrder
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.samplers import Samplers, Work


class Order(Protocol):
    """The steps come in their order; each begins, gives its rollouts, and ends."""

    work: Work | None
    """The sampling of the last batch."""

    def begin(self, step: int, model: Any) -> None:
        """Publish the weights after `step` updates, and have rollouts sampled with them."""

    def rollouts(self, step: int) -> list[Rollout]:
        """Wait for the rollouts of a step, which are stored. Those that are used are its batch. Raises TrainError."""

    def end(self, step: int) -> None:
        """Remove what the steps after this one do not need."""

    def close(self) -> None:
        """Have nothing more sampled."""


def order_of(config: TrainRlConfig, samplers: Samplers | None, first_step: int, progress: LessonProgress) -> Order:
    """The order of a training that begins, or resumes, at `first_step`. Without samplers it is a replay."""
    if samplers is None:
        return ReplayedOrder(config, progress)
    if config.order == FREE:
        return FreeOrder(config, samplers, first_step)
    return ScheduledOrder(config, samplers, progress)
