"""One run of Levanter's `train_dpo`, with our config."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
from levanter.adaptor import AdaptorConfig
from levanter.data.text import DatasetComponent, PreferenceChatLmDatasetFormat, PreferenceLmDataConfig
from levanter.dpo import ReferenceEvalCacheConfig
from levanter.main import train_dpo

from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.formats import rows_in
from marin_assets.stages.train.inputs.starting_point import StartingPoint
from marin_assets.stages.train.levanter_run.adaptor import add_hooks
from marin_assets.stages.train.levanter_run.config import build_config
from marin_assets.stages.train.levanter_run.devices.memory import require_room_on_devices
from marin_assets.stages.train.levanter_run.export import Export
from marin_assets.stages.train.levanter_run.initial_weights import local_start
from marin_assets.stages.train.levanter_run.lora import TrainFactors, policy_of
from marin_assets.stages.train.levanter_run.run import run_main
from marin_assets.stages.train.metrics.metrics import MetricsFile, NoMetrics, ParameterCounts
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_resources.storage.paths import join


def run_levanter_dpo(
    config: TrainDpoConfig,
    metrics: MetricsFile | NoMetrics,
    *,
    tokenizer: str,
    log_dir: str,
    resumed_at: int | None,
    start: StartingPoint | None,
    validation_loss: str,
) -> ParameterCounts:
    """Train and export. Returns the numbers of parameters. `resumed_at` is the step of the last checkpoint, or None."""
    levanter_config = build_dpo_config(config, tokenizer=tokenizer, log_dir=log_dir)
    require_room_on_devices(config, levanter_config.model, tokenizer, jax.devices())
    adaptor = TrainFactors if config.lora else TrainPolicy
    levanter_config.adapter = adaptor(levanter_config, config, resumed_at=resumed_at, main_evaluates=True)
    return run_main(
        train_dpo.main,
        levanter_config,
        config,
        metrics,
        resumed_at=resumed_at,
        initial_evaluation_at=0,
        validation_loss=validation_loss,
    )


def build_dpo_config(config: TrainDpoConfig, *, tokenizer: str, log_dir: str) -> train_dpo.TrainDpoConfig:
    """Return Levanter's config: model, optimizer and trainer as those of `train_lm`, with preferences and reference."""
    [(name, path)] = config.components.items()
    assert isinstance(config.start, FromHuggingFace), "train_dpo has looked"
    base = local_start(config.start.path, log_dir)
    common = build_config(replace(config, train_weights={name: 1.0}), tokenizer=tokenizer, log_dir=log_dir)
    # Levanter pads the last batch with empty pairs, which it counts as wrong. An evaluation has the training's batches.
    batches = rows_in(path, "validation") // config.train_batch_size
    common.trainer.max_eval_batches = min(config.max_eval_batches or batches, batches)
    reference: train_dpo.DpoReferenceConfig
    if config.lora:
        reference = train_dpo.AdapterBaseReferenceConfig()
    elif config.reference is None:
        reference = train_dpo.SeparateReferenceConfig(model_path=base)
    else:
        reference = train_dpo.SeparateReferenceConfig(
            model_path=local_start(config.reference.path, join(log_dir, "reference"))
        )
    return train_dpo.TrainDpoConfig(
        data=PreferenceLmDataConfig(
            tokenizer=tokenizer,
            cache_dir=None,
            auto_build_caches=False,
            shuffle=True,
            permutation_type="feistel",
            components={name: DatasetComponent(cache_dir=path, format=PreferenceChatLmDatasetFormat())},
            train_weights={name: 1.0},
        ),
        model=common.model,
        optimizer=common.optimizer,
        trainer=common.trainer,
        initialize_from_hf=base,
        beta=config.beta,
        reference=reference,
        validation_split_fraction=None,  # the cache has a validation side
        run_initial_eval=True,
        # of this attempt: it is keyed by paths, not by the contents of the reference, and costs one evaluation
        reference_eval_cache=ReferenceEvalCacheConfig(mode="build_or_load", cache_dir=join(log_dir, "reference_cache")),
    )


@AdaptorConfig.register_subclass("marin_policy")
@dataclass(init=False, eq=False)
class TrainPolicy(AdaptorConfig):
    """Train all parameters of the policy. No NoAdaptorConfig, of which train_dpo would not install the hooks."""

    def __init__(
        self, config: train_dpo.TrainDpoConfig, own: TrainDpoConfig, *, resumed_at: int | None, **_: Any
    ) -> None:
        self.config, self.own, self.resumed_at = config, own, resumed_at

    def apply(self, model: Any, *, key: Any, axis_mapping: Any = None) -> Any:
        return model

    def trainable_filter(self, policy_model: Any) -> Any:
        return True

    def base_model_view(self, policy_model: Any) -> None:
        return None

    def install_export_hooks(self, *, trainer: Any, converter: Any, tokenizer: Any, export: Any) -> None:
        folder = Export(self.own, converter, tokenizer)

        def save(info: Any, path: str) -> None:
            folder.save(policy_of(info.eval_model), path)

        add_hooks(trainer, self.config, self.own, save, resumed_at=self.resumed_at)
