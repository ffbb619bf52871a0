"""The order of a training: it publishes weights, has rollouts sampled with them, and gives each step its batch."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.samplers import Work
from marin_assets.stages.train.rl.weights import publish, weights_path
from marin_resources.storage.files import exists, read_bytes

log = logging.getLogger(__name__)


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


def publish_and_compare(model: Any, output_path: str, weights_step: int) -> None:
    """Write the weights after this number of updates. Warns if an earlier attempt had others."""
    path = weights_path(output_path, weights_step)
    before = read_bytes(path) if exists(path) else None
    publish(model, output_path, weights_step)
    if before is not None and before != read_bytes(path):
        log.warning(
            "the weights after %d updates are others than an earlier attempt had: this host computes otherwise. "
            "Batches that it has sampled stay as they are, and their tokens are weighed by their likelihoods.",
            weights_step,
        )
