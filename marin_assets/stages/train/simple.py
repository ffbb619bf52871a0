"""The settings of a training with Marin's names: plain values, which become a TrainLmConfig's versioned fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.specs.optimizer import LoopSpec, NamedOptimizerSpec
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace, Start
from marin_assets.stages.train.specs.trackers import Tracker
from marin_assets.stages.train.specs.types import check_types
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.values import ConfigError, versioned, without_versions
from marin_resources.hardware.resources import Resources, cpu

OF_THE_OPTIMIZER = (
    "learning_rate",
    "weight_decay",
    "warmup",
    "decay",
    "rewarmup",
    "lr_schedule",
    "min_lr_ratio",
    "cycles",
    "cycle_length",
    "beta1",
    "beta2",
    "epsilon",
    "max_grad_norm",
    "skip_bad_steps",
)


@takes_marins_arguments
@dataclass(frozen=True, kw_only=True)
class SimpleTrainConfig:
    """Settings of a training. None keeps Levanter's default. See NamedOptimizerSpec and LoopSpec for what they mean."""

    resources: Resources = field(default_factory=cpu)
    train_batch_size: int | tuple[tuple[int, int], ...]
    """Sequences a step, or (first step, sequences) of each stage: ((0, 256), (10_000, 512))."""
    num_train_steps: int
    learning_rate: float
    optimizer: str = "adam"
    """Kind of the optimizer, one of `optimizer.KINDS`."""
    optimizer_fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of that kind, such as {"adam_lr": 3e-3} of muon."""
    weight_decay: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    max_grad_norm: float | None = None
    warmup: float | None = None
    decay: float | None = None
    rewarmup: float | None = None
    lr_schedule: str | None = None
    min_lr_ratio: float | None = None
    cycles: int | tuple[int, ...] | None = None
    cycle_length: float | tuple[int, ...] | None = None
    skip_bad_steps: bool | int | None = None
    z_loss_weight: float | None = None
    ema_beta: float | None = None
    train_seq_len: int | None = None
    seed: int = 0
    data_seed: int | None = None
    precision: str = "p=f32,c=bfloat16"
    train_weights: Mapping[str, float] | None = None
    tokenizer_path: str | None = None
    """None: the tokenizer of the tokenized sets."""
    steps_per_eval: int = 1000
    max_eval_batches: int | None = None
    steps_per_checkpoint: int = 10_000
    keep_last_checkpoints: int | None = None
    keep_checkpoints_every: int | None = None
    checkpoint_interval_s: float = 600
    steps_per_hf_export: int | None = None
    stop_on_nan: bool = True
    trackers: tuple[Tracker, ...] = ()
    per_device_parallelism: int | None = None
    per_device_eval_parallelism: int | None = None
    initialize_from_checkpoint_path: str | None = None
    """Folder of checkpoints to start from: its weights, or with reset_data_loader_on_init=False the whole state."""
    initialize_from_step: int | None = None
    """Number of that checkpoint; None: the last one."""
    initialize_from_hf: str | None = None
    """Hugging Face folder to start from."""
    reset_data_loader_on_init: bool = True
    levanter: Mapping[str, Any] = field(default_factory=dict)
    """Any further field of Levanter's config, by its path: {"optimizer.epsilon": 1e-9}."""


def to_train_lm_config(
    simple: SimpleTrainConfig,
    *,
    components: Mapping[str, str],
    model: LlamaSpec | ModelSpec | HuggingFaceModel,
    tokenizer_path: str,
) -> TrainLmConfig:
    """The config of `train_lm`, in which all that decides the result is versioned. Raises ConfigError, or TrainError
    for a value of another type."""
    simple = without_versions(simple)
    check_types(simple)
    sizes = simple.train_batch_size
    schedule = None if isinstance(sizes, int) else tuple((start, size) for start, size in sizes)
    size = sizes if isinstance(sizes, int) else sizes[0][1] if sizes else 1  # an empty schedule is refused as such
    optimizer = {name: versioned(getattr(simple, name)) for name in OF_THE_OPTIMIZER}
    return TrainLmConfig(
        components=dict(components),
        tokenizer_path=tokenizer_path,
        train_weights=versioned(None if simple.train_weights is None else dict(simple.train_weights)),
        model=model,
        optimizer=NamedOptimizerSpec(
            kind=versioned(simple.optimizer), fields=versioned(dict(simple.optimizer_fields)), **optimizer
        ),
        loop=LoopSpec(
            batch_schedule=versioned(schedule),
            train_seq_len=versioned(simple.train_seq_len),
            z_loss_weight=versioned(simple.z_loss_weight),
            ema_beta=versioned(simple.ema_beta),
            data_seed=versioned(simple.data_seed),
            per_device_parallelism=simple.per_device_parallelism,
            per_device_eval_parallelism=simple.per_device_eval_parallelism,
        ),
        levanter=versioned(dict(simple.levanter)) if simple.levanter else None,
        start=start_of(simple),
        num_train_steps=versioned(simple.num_train_steps),
        train_batch_size=versioned(size),
        seed=versioned(simple.seed),
        precision=versioned(simple.precision),
        steps_per_eval=simple.steps_per_eval,
        max_eval_batches=simple.max_eval_batches,
        steps_per_checkpoint=simple.steps_per_checkpoint,
        keep_last_checkpoints=simple.keep_last_checkpoints,
        keep_checkpoints_every=simple.keep_checkpoints_every,
        stop_on_nan=simple.stop_on_nan,
        trackers=simple.trackers,
        checkpoint_interval_s=simple.checkpoint_interval_s,
        steps_per_hf_export=simple.steps_per_hf_export,
    )


def start_of(simple: SimpleTrainConfig) -> Start | None:
    """The Start of the training. Raises ConfigError if two are given."""
    if simple.initialize_from_hf is not None:
        if simple.initialize_from_checkpoint_path is not None:
            raise ConfigError(
                "A training has initialize_from_hf and initialize_from_checkpoint_path, expected at most one of them."
            )
        return FromHuggingFace(path=simple.initialize_from_hf)
    if simple.initialize_from_checkpoint_path is None:
        return None
    return FromCheckpoint(
        checkpoints_path=simple.initialize_from_checkpoint_path,
        step=versioned(simple.initialize_from_step),
        optimizer_state=versioned(not simple.reset_data_loader_on_init),
    )
