"""Our config of a training as Levanter's."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import draccus
import jax
import jmp
from levanter.callbacks.watch import WatchConfig
from levanter.distributed import DistributedConfig
from levanter.main import train_lm
from levanter.main.train_lm import TrainLmConfig as LevanterConfig
from levanter.optim import AdamConfig, OptimizerConfig
from levanter.optim.model_averaging import EmaModelAveragingConfig
from levanter.schedule import ScheduleStep
from levanter.trainer import TrainerConfig

from marin_assets.stages.train.config import OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.levanter_run.checkpointer import LateCheckpointerConfig
from marin_assets.stages.train.levanter_run.data import build_data
from marin_assets.stages.train.levanter_run.models import model_config
from marin_assets.stages.train.specs.levanter_fields import check_paths
from marin_assets.stages.train.specs.optimizer import LoopSpec, NamedOptimizerSpec
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

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
        optimizer=_optimizer_config(config.optimizer),
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
    _apply_loop(built, config.loop)
    _apply_overrides(built, config.levanter)
    return built


def _optimizer_config(spec: OptimizerSpec | NamedOptimizerSpec) -> OptimizerConfig:
    """Levanter's optimizer."""
    if isinstance(spec, OptimizerSpec):
        return AdamConfig(**vars(spec))
    kind: Any = OptimizerConfig.get_known_choices()[spec.kind]
    own = {name: value for name, value in vars(spec).items() if name not in ("kind", "fields") and value is not None}
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in {**own, **spec.fields}.items()}
    optimizer: OptimizerConfig = kind(**given)
    return optimizer


def _apply_loop(config: LevanterConfig, loop: LoopSpec | None) -> None:
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


def _apply_overrides(config: Any, levanter: Mapping[str, Any] | None) -> None:
    """Set each field of Levanter's config. Raises TrainError for an unknown path, or a value of another type."""
    check_paths(levanter or {})
    for path, value in (levanter or {}).items():
        _set(config, path.split("."), path, value)


def _set(config: Any, names: list[str], path: str, value: Any) -> Any:
    """The config with the field set: the same one, or a copy if it is frozen."""
    name, *rest = names
    field_names = [field.name for field in dataclasses.fields(config) if field.init]
    if name not in field_names:
        raise TrainError(
            f"levanter has {path!r}, and {type(config).__name__} has no field {name!r}, "
            f"{expected_one_of(name, sorted(field_names))}"
        )
    hint = typing.get_type_hints(type(config))[name]
    if rest:
        inner = getattr(config, name)
        inner = _new(hint) if inner is None else inner
        if not dataclasses.is_dataclass(inner):
            raise TrainError(f"levanter has {path!r}, and {name!r} has no fields. Give the value of {name!r} itself.")
        new = _set(inner, rest, path, value)
    else:
        new = _decode(hint, value, path)
    if type(config).__dataclass_params__.frozen:
        return dataclasses.replace(config, **{name: new})
    setattr(config, name, new)
    return config


def _new(hint: Any) -> Any:
    """The default of an optional dataclass; None if it is none."""
    kind: Any = next((kind for kind in typing.get_args(hint) if dataclasses.is_dataclass(kind)), None)
    return None if kind is None else kind()


def _decode(hint: Any, value: Any, path: str) -> Any:
    """The value as the field's type. A text is no number and a number no text, as draccus would take them."""
    kinds = typing.get_args(hint) or (hint,)
    scalars = [kind for kind in kinds if kind in (bool, int, float, str)]
    is_right = type(value) in scalars or (type(value) is int and float in scalars)
    if is_right or (value is None and type(None) in kinds):
        return value
    expected = getattr(hint, "__name__", str(hint)) if not typing.get_args(hint) else str(hint)
    if isinstance(value, bool | int | float | str) and len(scalars) == len([k for k in kinds if k is not type(None)]):
        raise TrainError(f"levanter has {path!r} as {value!r}, expected {expected}.")
    try:
        return draccus.decode(hint, list(value) if isinstance(value, tuple) else value)
    except Exception as error:  # draccus raises errors of several kinds, also those of the classes that it makes
        raise TrainError(f"levanter has {path!r} as {value!r}, expected {expected}: {error}.") from error
