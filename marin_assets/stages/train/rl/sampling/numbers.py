"""Set jax as Levanter sets it for the training, in the process of a sampler. Importing this imports jax."""

from __future__ import annotations

import os

import jax

from marin_assets.stages.train.levanter_run.config import JAX_CONFIG
from marin_assets.stages.train.rl.config import TrainRlConfig


def use_numbers_of_training(config: TrainRlConfig) -> None:
    """Call it before jax computes anything."""
    for name, value in JAX_CONFIG.items():
        jax.config.update(name, value)
    if config.compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", os.path.expanduser(config.compilation_cache_dir))
