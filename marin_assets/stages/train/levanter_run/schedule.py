"""A schedule of the learning rate that begins at the first step of this run, when the optimizer's count goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from levanter.optim import OptimizerConfig


def begin_schedule_at(optimizer: OptimizerConfig, first_step: int) -> OptimizerConfig:
    """The same optimizer, whose schedule has its beginning at `first_step` and its end at the last step."""
    if first_step == 0:
        return optimizer
    kind = type(optimizer)

    def lr_scheduler(self: Any, num_train_steps: int, override_lr: float | None = None) -> Callable[[Any], Any]:
        schedule = kind.lr_scheduler(self, num_train_steps - first_step, override_lr)
        return lambda count: schedule(count - first_step)

    object.__setattr__(optimizer, "lr_scheduler", lr_scheduler.__get__(optimizer))
    return optimizer
