"""Our config of a training as Levanter's."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import jmp
from levanter.callbacks.watch import WatchConfig
from levanter.distributed import DistributedConfig
from levanter.main import train_lm
from levanter.trainer import TrainerConfig

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.levanter_run.checkpointer import LateCheckpointerConfig
from marin_assets.stages.train.levanter_run.data import build_data
from marin_assets.stages.train.levanter_run.models import model_config
from marin_assets.stages.train.levanter_run.optimizers import apply_loop, optimizer_config
from marin_assets.stages.train.levanter_run.overrides import apply_overrides
from marin_resources.storage.paths import join

JAX_CONFIG = {
    "jax_threefry_partitionable": True,  # Levanter's two defaults, which this dict replaces
    "jax_softmax_custom_jvp": True,
    # The default caches only functions that compile for over 1 s: 3 of the 60 of a nano run.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def build_config(config: TrainLmConfig, *, tokenizer: str, log_dir: str) -> train_lm.TrainLmConfig:
    """Return Levanter's config. Fields that are not set here keep Levanter's defaults."""
    cache_dir = config.compilation_cache_dir
    built = train_lm.TrainLmConfig(
        data=build_data(config, tokenizer=tokenizer),
        model=model_config(config.model, tokenizer),
        optimizer=optimizer_config(config.optimizer),
        trainer=TrainerConfig(
            id="train",
            seed=config.seed,
            mp=jmp.get_policy(config.precision),
            num_train_steps=config.num_train_steps,
            train_batch_size=config.train_batch_size,
            steps_per_eval=config.steps_per_eval,
            max_eval_batches=config.max_eval_batches,
            crash_on_nan=False,  # `adaptor.py` does, with a sentence
            crash_on_inf=False,
            watch=WatchConfig(watch_targets=["grads"], include_per_parameter_norms=False),
            require_accelerator=False,
            log_jaxprs=False,
            log_xla_hlo=False,
            log_dir=Path(log_dir),
            distributed=DistributedConfig(initialize_jax_distributed=False),
            checkpointer=LateCheckpointerConfig(
                base_path=join(config.output_path, "checkpoints"),
                append_run_id_to_base_path=False,
                save_interval=timedelta(seconds=config.checkpoint_interval_s),
                keep=[{"every": config.steps_per_checkpoint}],
                keep_last=config.keep_last_checkpoints,
                keep_every=config.keep_checkpoints_every,
            ),
            jax_config=JAX_CONFIG,
            jax_compilation_cache_dir=os.path.expanduser(cache_dir) if cache_dir else None,
        ),
    )
    apply_loop(built, config.loop)
    apply_overrides(built, config.levanter)
    return built
