"""Our specs of optimizer and loop as Levanter's."""

from __future__ import annotations

from typing import Any

import jax
from levanter.main.train_lm import TrainLmConfig as LevanterConfig
from levanter.optim import AdamConfig, OptimizerConfig
from levanter.optim.model_averaging import EmaModelAveragingConfig
from levanter.schedule import ScheduleStep

from marin_assets.stages.train.config import OptimizerSpec
from marin_assets.stages.train.specs.optimizer import LoopSpec, NamedOptimizerSpec


def optimizer_config(spec: OptimizerSpec | NamedOptimizerSpec) -> OptimizerConfig:
    """Levanter's optimizer."""
    if isinstance(spec, OptimizerSpec):
        return AdamConfig(**vars(spec))
    kind: Any = OptimizerConfig.get_known_choices()[spec.kind]
    own = {name: value for name, value in vars(spec).items() if name not in ("kind", "fields") and value is not None}
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in {**own, **spec.fields}.items()}
    found: OptimizerConfig = kind(**given)
    return found


def apply_loop(config: LevanterConfig, loop: LoopSpec | None) -> None:
    """Put the loop's settings into Levanter's config."""
    if loop is None:
        return
    trainer = config.trainer
    size = trainer.train_batch_size
    if loop.batch_schedule is not None:
        trainer.train_batch_size = [ScheduleStep(start=start, value=size) for start, size in loop.batch_schedule]
        size = loop.batch_schedule[0][1]
    if loop.ema_beta is not None:
        trainer.model_averaging = EmaModelAveragingConfig(beta=loop.ema_beta)
    config.train_seq_len = loop.train_seq_len
    config.z_loss_weight = loop.z_loss_weight or 0.0
    config.data_seed = loop.data_seed
    trainer.per_device_parallelism = loop.per_device_parallelism or -1
    trainer.per_device_eval_parallelism = loop.per_device_eval_parallelism or -1
    at_a_time = loop.per_device_eval_parallelism or loop.per_device_parallelism
    if at_a_time is not None and trainer.max_eval_batches is not None:
        # as many sequences as without it: an evaluation's batch has only those that are on the devices at a time
        trainer.max_eval_batches = -(-trainer.max_eval_batches * size // (at_a_time * jax.device_count()))
