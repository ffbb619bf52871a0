"""The training loop: the batch of each step comes from the order of the training, and is trained on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.batch import Arrays, arrays_of, groups_without_variance, used_groups
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.curriculum.progress import LessonProgress
from marin_assets.stages.train.rl.measures.passes import measures_of
from marin_assets.stages.train.rl.orders.order import order_of
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.samplers import Samplers
from marin_assets.stages.train.specs.precision import read_precision

TOLERATED, TOLERATED_OF_VLLM, TOLERATED_OF_16_BITS = 1e-4, 0.01, 0.2


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
    samplers: Samplers | None
    """None: nothing is sampled."""
    train: Callable[[Any, Arrays], Trained]
    """Makes one update."""
    report: Callable[[int, dict[str, float]], None]
    """Is given the metrics of a step."""
    positions: int
    """Tokens of a row."""
    first_step: int
    busy_before: float = 0.0
    progress: LessonProgress = field(init=False)

    def __post_init__(self) -> None:
        self.progress = LessonProgress(
            self.config.curriculum,
            self.config.lessons,
            output_path=self.config.output_path,
            staleness=self.config.staleness,
        )

    def run(self, state: Any) -> Any:
        """Train from `first_step` to the end. Returns the last state."""
        self.order = order_of(self.config, self.samplers, self.first_step, self.progress)
        try:
            for step in range(self.first_step, self.config.num_train_steps):
                state = self._step(state, step)
        finally:
            self.order.close()
        return state

    def _step(self, state: Any, step: int) -> Any:
        began = time.monotonic()
        self.order.begin(step, state.model)
        waiting_since = time.monotonic()
        rollouts = self.order.rollouts(step)
        waited_s = time.monotonic() - waiting_since
        trained = self.train(state, arrays_of(self.config, rollouts, self.positions))
        self._require_agreement(step, rollouts, trained)
        self.report(step, self._metrics(step, rollouts, trained, waited_s, time.monotonic() - began))
        self.order.end(step)
        return trained.state

    def _require_agreement(self, step: int, rollouts: Sequence[Rollout], trained: Trained) -> None:
        """Raise TrainError if the loss sees other likelihoods than the sampler drew by, with the same weights."""
        if step != self.first_step or any(rollout.weights_step != step for rollout in rollouts if rollout.used):
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
        steps = [step - rollout.weights_step for rollout in used]
        return {
            "train/loss": trained.loss,
            "throughput/tokens_per_second": drawn / seconds,
            "throughput/duration": trained.seconds,
            **rewards_of(rollouts),
            **measures_of(step, rollouts),
            **self.progress.metrics(step),
            **({"rl/staleness": sum(steps) / len(steps)} if used else {}),
            "rl/rollouts_unused": float(len(rollouts) - len(used)),
            "rl/groups_without_variance": float(groups_without_variance(rollouts)),
            "rl/batch_share": len(used_groups(rollouts)) / self.config.groups,
            "rl/answer_tokens": drawn / max(len(used), 1),
            "rl/truncated_share": sum(rollout.finish == "length" for rollout in used) / max(len(used), 1),
            "rl/wait_share": waited_s / seconds,
            **self._of_samplers(seconds),
        }

    def _of_samplers(self, seconds: float) -> dict[str, float]:
        metrics = {}
        work = self.order.work
        if work is not None and work.seconds:
            metrics["rl/drawn_tokens_per_second"] = work.tokens / work.seconds
        if self.samplers is None:
            return metrics
        metrics |= self.samplers.weights.sync_metrics(seconds)
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
    if read_precision(config.precision).compute_bytes != 4:
        return TOLERATED_OF_16_BITS
    return TOLERATED if config.engine is None else TOLERATED_OF_VLLM
