"""The training loop: the batch of each step is sampled with weights that are `staleness` updates older, and trained on.

The order is scheduled: which weights sample which batch is fixed, and so is the result. Weights are written before they
are sampled from, and rollouts before they are trained on. A resumed loop reads the rollouts that are written, and
computes its weights again; it warns if they are others than an earlier attempt has published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.batch import Arrays, arrays_of, choose_used, groups_without_variance
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.plan import Unit, units_of, weights_step_of
from marin_assets.stages.train.rl.rollout import Rollout, has_step, read_step, write_step
from marin_assets.stages.train.rl.sampling.sampler import read_unit, remove_units
from marin_assets.stages.train.rl.sampling.samplers import Samplers, Work
from marin_assets.stages.train.rl.weights.packing import packed
from marin_assets.stages.train.specs.precision import read_precision
from marin_resources.storage.files import remove, write_json
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

PLANS = "plans"
"""Below the output, while it runs: what is sampled for the steps whose rollouts are not whole yet."""
TOLERATED, TOLERATED_OF_16_BITS = 1e-4, 0.2


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The outcome of an update."""

    state: Any
    loss: float
    seconds: float
    metrics: dict[str, float]
    """Measured in the loss, by their names there."""


@dataclass(eq=False)
class Loop:
    """The state of the loop, in the process of the training."""

    config: TrainRlConfig
    samplers: Samplers
    train: Callable[[Any, Arrays], Trained]
    """Makes one update."""
    report: Callable[[int, dict[str, float]], None]
    """Is given the metrics of a step."""
    positions: int
    """Tokens of a row."""
    first_step: int
    begun: set[int] = field(default_factory=set)
    busy_before: float = 0.0
    work: Work | None = None
    """The sampling of the last batch."""

    def run(self, state: Any) -> Any:
        """Train from `first_step` to the end. Returns the last state."""
        for step in range(self.first_step, self.config.num_train_steps):
            began = time.monotonic()
            self._publish(state, step)
            self._begin_steps(step)
            waiting_since = time.monotonic()
            rollouts = self._finish(step)
            waited_s = time.monotonic() - waiting_since
            trained = self.train(state, arrays_of(self.config, rollouts, self.positions))
            state = trained.state
            self._require_agreement(step, trained)
            metrics = self._metrics(step, rollouts, trained, waited_s, time.monotonic() - began)
            self.report(step, metrics)
            # The batches up to this step are written, so later ones are sampled with these weights or newer ones.
            self.samplers.weights.remove_before(weights_step_of(self.config, step + 1))
        return state

    def _publish(self, state: Any, weights_step: int) -> None:
        """Publish the weights after this number of updates, if a batch is to be sampled with them."""
        if any(weights_step_of(self.config, step) == weights_step for step in self._missing_from(weights_step)):
            self.samplers.weights.publish(lambda: packed(state.model), weights_step)

    def _missing_from(self, weights_step: int) -> list[int]:
        """The steps that these weights could sample, and whose rollouts do not exist."""
        last = min(weights_step + self.config.staleness, self.config.num_train_steps - 1)
        path = self.config.output_path
        return [step for step in range(weights_step, last + 1) if not has_step(path, step)]

    def _begin_steps(self, step: int) -> None:
        """Begin to sample all steps whose weights exist after `step` updates."""
        for later in self._missing_from(step):
            if later in self.begun:
                continue
            weights_step = weights_step_of(self.config, later)
            units = units_of(self.config, later)
            plan = {"step": later, "weights_step": weights_step, "units": [encode(unit) for unit in units]}
            write_json(_plan_path(self.config, later), plan)
            self.samplers.begin(units)
            self.begun.add(later)

    def _finish(self, step: int) -> list[Rollout]:
        """The rollouts of a step, which are stored."""
        if step not in self.begun and (stored := read_step(self.config.output_path, step)) is not None:
            return stored
        self.work = self.samplers.finish(step)
        units: Sequence[Unit] = units_of(self.config, step)
        rollouts = [rollout for unit in units for rollout in read_unit(self.config.output_path, unit)]
        rollouts = choose_used(self.config, rollouts)
        write_step(self.config.output_path, step, rollouts)
        remove_units(self.config.output_path, step)
        remove(_plan_path(self.config, step))
        return rollouts

    def _require_agreement(self, step: int, trained: Trained) -> None:
        """Raise TrainError if the loss sees other likelihoods than the sampler drew by, with the same weights."""
        if step != self.first_step or weights_step_of(self.config, step) != step:
            return
        worst, tolerated = trained.metrics["mismatch_max"], tolerated_mismatch(self.config)
        if not worst <= tolerated:
            raise TrainError(
                f"At step {step} a token's log-probability is {worst:.2g} nats off between sampling and loss, with the "
                f"same weights, expected at most {tolerated:g}: what is trained is not what was drawn. If the "
                "compute is this inexact, raise tolerated_mismatch; else this is a fault of the training."
            )

    def _metrics(
        self, step: int, rollouts: Sequence[Rollout], trained: Trained, waited_s: float, seconds: float
    ) -> dict[str, float]:
        used = [rollout for rollout in rollouts if rollout.used]
        drawn = sum(sum(rollout.mask) for rollout in used)
        weights_step = weights_step_of(self.config, step)
        return {
            "train/loss": trained.loss,
            "throughput/tokens_per_second": drawn / seconds,
            "throughput/duration": trained.seconds,
            **rewards_of(rollouts),
            "rl/staleness": float(step - weights_step),
            "rl/rollouts_unused": float(len(rollouts) - len(used)),
            "rl/groups_without_variance": float(groups_without_variance(rollouts)),
            "rl/answer_tokens": drawn / max(len(used), 1),
            "rl/truncated_share": sum(rollout.finish == "length" for rollout in used) / max(len(used), 1),
            "rl/wait_share": waited_s / seconds,
            **self._of_samplers(seconds),
            **self.samplers.weights.sync_metrics(seconds),
        }

    def _of_samplers(self, seconds: float) -> dict[str, float]:
        metrics = {}
        if self.work is not None and self.work.seconds:
            metrics["rl/drawn_tokens_per_second"] = self.work.tokens / self.work.seconds
        if (busy := self.samplers.busy_seconds()) is not None:
            share = (busy - self.busy_before) / (seconds * self.config.samplers)
            metrics["rl/samplers_wait_share"] = max(1 - share, 0.0)
            self.busy_before = busy
        return metrics


def rewards_of(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Mean rewards as metrics: of all rollouts that are used, and by lesson of all that have a reward."""
    by_lesson: dict[str, list[float]] = {}
    for rollout in rollouts:
        if rollout.reward is not None:
            by_lesson.setdefault(rollout.lesson, []).append(rollout.reward)
    used = [rollout.reward or 0.0 for rollout in rollouts if rollout.used]
    return {
        **({"rl/reward": sum(used) / len(used)} if used else {}),
        **{f"rl/reward/{name}": sum(values) / len(values) for name, values in sorted(by_lesson.items())},
    }


def tolerated_mismatch(config: TrainRlConfig) -> float:
    if config.tolerated_mismatch is not None:
        return config.tolerated_mismatch
    return TOLERATED if read_precision(config.precision).compute_bytes == 4 else TOLERATED_OF_16_BITS


def _plan_path(config: TrainRlConfig, step: int) -> str:
    return join(config.output_path, PLANS, f"step-{step:07}.json")
