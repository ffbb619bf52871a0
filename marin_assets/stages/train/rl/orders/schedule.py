"""The scheduled order: the batch of each step is sampled with weights that are `staleness` updates older.

Which weights sample which batch is fixed, and so is the result. Weights are written before they are sampled from, and
rollouts before they are trained on. A resumed training reads the rollouts that are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.rl.batch import choose_used, mark_unused, used_groups
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.curriculum.progress import LessonProgress
from marin_assets.stages.train.rl.plan import Unit, unit_of, units_of, weights_step_of
from marin_assets.stages.train.rl.rollout import Rollout, has_step, read_step, write_step
from marin_assets.stages.train.rl.sampling.sampler import read_unit, remove_units
from marin_assets.stages.train.rl.sampling.samplers import Samplers, Work
from marin_assets.stages.train.rl.weights.packing import packed
from marin_resources.storage.files import remove, write_json
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

PLANS = "plans"
"""Below the output, while it runs: what is sampled for the steps whose rollouts are not whole yet."""


@dataclass(eq=False)
class ScheduledOrder:
    """An Order."""

    config: TrainRlConfig
    samplers: Samplers
    progress: LessonProgress
    begun: set[int] = field(default_factory=set)
    work: Work | None = None

    def begin(self, step: int, model: Any) -> None:
        missing = self._missing_from(step)
        if any(weights_step_of(self.config, later) == step for later in missing):
            self.samplers.weights.publish(lambda: packed(model), step)
        for later in missing:
            if later not in self.begun:
                units = units_of(self.config, later, self.progress.weights_for(later))
                self.progress.write()
                self._sample(later, units)
                self.begun.add(later)

    def rollouts(self, step: int) -> list[Rollout]:
        if step not in self.begun and (stored := read_step(self.config.output_path, step)) is not None:
            return stored
        rollouts = choose_used(self.config, self._sampled(step))
        write_step(self.config.output_path, step, rollouts)
        remove_units(self.config.output_path, step)
        remove(_plan_path(self.config, step))
        return rollouts

    def end(self, step: int) -> None:
        # The batches up to this step are written, so later ones are sampled with these weights or newer ones.
        self.samplers.weights.remove_before(weights_step_of(self.config, step + 1))

    def close(self) -> None: ...

    def _missing_from(self, weights_step: int) -> list[int]:
        """The steps that these weights could sample, and whose rollouts do not exist."""
        last = min(weights_step + self.config.staleness, self.config.num_train_steps - 1)
        path = self.config.output_path
        return [step for step in range(weights_step, last + 1) if not has_step(path, step)]

    def _sample(self, step: int, units: Sequence[Unit]) -> None:
        plan = {
            "step": step,
            "weights_step": weights_step_of(self.config, step),
            "units": [encode(unit) for unit in units],
        }
        write_json(_plan_path(self.config, step), plan)
        self.samplers.begin(units)

    def _sampled(self, step: int) -> list[Rollout]:
        """Wait for the units of a step; then for as many extra ones as its batch needs and the config allows."""
        weights = self.progress.weights_for(step)
        units: Sequence[Unit] = units_of(self.config, step, weights)
        size, weights_step = self.config.groups_per_unit, weights_step_of(self.config, step)
        last = (self.config.groups + (self.config.most_extra_groups or 0)) // size
        rollouts: list[Rollout] = []
        self.work = Work(seconds=0.0, tokens=0)
        while True:
            self.work += self.samplers.finish(step)
            rollouts += [rollout for unit in units for rollout in read_unit(self.config.output_path, unit)]
            missing = self.config.groups - len(used_groups(mark_unused(self.config, rollouts)))
            first = units[-1].number + 1
            numbers = range(first, min(first - (-missing // size), last))
            if not numbers:
                return rollouts
            units = [unit_of(self.config, step, number, weights_step, weights) for number in numbers]
            self._sample(step, units)


def _plan_path(config: TrainRlConfig, step: int) -> str:
    return join(config.output_path, PLANS, f"step-{step:07}.json")
