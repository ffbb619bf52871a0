"""The fields of Levanter's config that a training sets itself, so that `levanter={…}` does not reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.stages.train.errors import TrainError

OWNED: Mapping[str, str] = {
    "adapter": "the run's hooks",
    "data": "components, train_weights and tokenizer_path",
    "data_seed": "LoopSpec.data_seed",
    "hf_save_path": "steps_per_hf_export",
    "hf_save_steps": "steps_per_hf_export",
    "hf_upload": "a step of its own",
    "initialize_from_checkpoint_path": "start",
    "initialize_from_hf": "start",
    "merged_hf_save_path": "the run's hooks",
    "merged_hf_upload": "the run's hooks",
    "model.max_seq_len": "model",
    "model.reference_checkpoint": "model",
    "model.tokenizer": "tokenizer_path",
    "peft_hf_upload": "the run's hooks",
    "peft_save_path": "the run's hooks",
    "train_seq_len": "LoopSpec.train_seq_len",
    "trainer.checkpointer": "steps_per_checkpoint and checkpoint_interval_s",
    "trainer.distributed": "resources",
    "trainer.id": "the output path",
    "trainer.initialize_from": "start",
    "trainer.jax_compilation_cache_dir": "compilation_cache_dir",
    "trainer.load_checkpoint": "start",
    "trainer.load_checkpoint_path": "start",
    "trainer.log_dir": "the output path",
    "trainer.max_eval_batches": "max_eval_batches",
    "trainer.model_averaging": "LoopSpec.ema_beta",
    "trainer.mp": "precision",
    "trainer.num_train_steps": "num_train_steps",
    "trainer.seed": "seed",
    "trainer.steps_per_eval": "steps_per_eval",
    "trainer.tracker": "metrics.jsonl",
    "trainer.train_batch_size": "train_batch_size",
    "trainer.wandb": "metrics.jsonl",
    "use_hf_model_config": "model_from_hf",
}
"""Path of a field, or of what holds it -> what sets it."""


def check_paths(levanter: Mapping[str, Any]) -> None:
    """Raise TrainError for a path that is set by the training itself, or that is inside another one given."""
    for path in sorted(levanter):
        owner = next((owned for owned in OWNED if path == owned or path.startswith(f"{owned}.")), None)
        if owner is not None:
            raise TrainError(f"levanter has {path!r}, which this training sets itself: by {OWNED[owner]}. Set that.")
        inside = next((owned for owned in OWNED if owned.startswith(f"{path}.")), None)
        if inside is not None:
            raise TrainError(
                f"levanter has {path!r}, which holds {inside!r}, and this training sets that itself. Give the fields "
                f"below {path!r} one by one."
            )
        outer = next((other for other in levanter if path.startswith(f"{other}.")), None)
        if outer is not None:
            raise TrainError(f"levanter has {outer!r} and {path!r}, which is in it. Give one of them.")
