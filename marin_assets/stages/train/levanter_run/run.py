"""A run of Levanter's with our config, tracker and checkpointer: that of `train_lm`, and what others share with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import fsspec
import jax
from levanter.main import train_lm
from levanter.optim import OptimizerConfig

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.inputs.starting_point import StartingPoint
from marin_assets.stages.train.levanter_run.adaptor import ExportAndEvaluate
from marin_assets.stages.train.levanter_run.all_hosts import evaluation_on_many_devices
from marin_assets.stages.train.levanter_run.config import build_config
from marin_assets.stages.train.levanter_run.damage import damage_named
from marin_assets.stages.train.levanter_run.devices.loss import loss_by_xla
from marin_assets.stages.train.levanter_run.devices.memory import require_room_on_devices
from marin_assets.stages.train.levanter_run.devices.peaks import correct_peaks
from marin_assets.stages.train.levanter_run.initial_weights import beginning_with, local_start
from marin_assets.stages.train.levanter_run.lora import TrainFactors
from marin_assets.stages.train.levanter_run.models import require_same_model
from marin_assets.stages.train.levanter_run.tracker import MetricsTracker, MetricsTrackerConfig, logging_preserved
from marin_assets.stages.train.metrics.metrics import MetricsFile, NoMetrics, ParameterCounts, Progress
from marin_assets.stages.train.specs.mixture import mixture_metrics
from marin_assets.stages.train.specs.optimizer import sequences_in
from marin_assets.stages.train.vocabulary import rows_of
from marin_resources.storage.paths import BUCKET_SCHEMES


def run_levanter(
    config: TrainLmConfig,
    metrics: MetricsFile | NoMetrics,
    *,
    tokenizer: str,
    log_dir: str,
    resumed_at: int | None,
    start: StartingPoint | None = None,
    validation_loss: str,
) -> ParameterCounts:
    """Train and export. Returns the numbers of parameters. `resumed_at` is the step of the last checkpoint, or None.

    `config.num_train_steps` counts those of the starting point too, if its optimizer's state is continued.
    """
    levanter_config = build_config(config, tokenizer=tokenizer, log_dir=log_dir)
    require_room_on_devices(config, levanter_config.model, tokenizer, jax.devices())
    if start is not None:
        require_same_model(start, levanter_config.model)
        _begin_schedule_at(levanter_config.optimizer, start.first_step)
        levanter_config.trainer.initialize_from = start.path if start.optimizer_state else None
    beginning: AbstractContextManager[None] = nullcontext()
    if config.lora and start is not None:
        # Levanter reads the base of the factors again when it resumes
        levanter_config.initialize_from_hf = local_start(start.path, log_dir)
        levanter_config.adapter = TrainFactors(levanter_config, config, resumed_at=resumed_at)
    else:
        levanter_config.adapter = ExportAndEvaluate(levanter_config, config, resumed_at=resumed_at)
        beginning = beginning_with(
            start,
            model_config=levanter_config.model,
            vocab_size=rows_of(config.model),
            is_resumed=resumed_at is not None,
            folder=log_dir,
        )
    first_step = 0 if start is None else start.first_step
    with beginning:
        return run_main(
            train_lm.main,
            levanter_config,
            config,
            metrics,
            resumed_at=resumed_at,
            first_step=first_step,
            validation_loss=validation_loss,
        )


def run_main(
    main: Callable[[Any], None],
    levanter_config: Any,
    config: TrainLmConfig,
    metrics: MetricsFile | NoMetrics,
    *,
    resumed_at: int | None,
    first_step: int = 0,
    initial_evaluation_at: int | None = None,
    validation_loss: str,
) -> ParameterCounts:
    """Run a `main` of Levanter's with our tracker and checkpointer, and wait for the last checkpoint.

    `initial_evaluation_at`: the step at which `main` logs its evaluation of the untrained model.
    """
    levanter_config.trainer.checkpointer.before_each = metrics.save
    length = getattr(levanter_config, "train_seq_len", None) or levanter_config.model.max_seq_len
    sequences = sequences_in(config.train_batch_size, config.loop, first_step, config.num_train_steps)
    progress = Progress(config.num_train_steps, sequences * length // (config.num_train_steps - first_step))
    tracker = MetricsTracker(
        metrics,
        progress,
        finished=resumed_at == config.num_train_steps - 1,
        initial_evaluation_at=initial_evaluation_at,
        validation_loss=validation_loss,
        of_step=mixture_metrics(config.mixture),
    )
    levanter_config.trainer.tracker = MetricsTrackerConfig(tracker)
    correct_peaks()
    with (
        logging_preserved(),
        listings_cache_disabled(),
        loss_by_xla(),
        evaluation_on_many_devices(),
        warnings.catch_warnings(),
    ):
        # For a second run in one process: Levanter cannot remove the tracker of the first.
        warnings.filterwarnings("ignore", message="Global tracker is already set")
        with damage_named(levanter_config.trainer.checkpointer.base_path):
            main(levanter_config)
        levanter_config.trainer.checkpointer.created.wait_until_finished()
    return _counts(levanter_config.adapter, tracker)


def _counts(adaptor: Any, tracker: MetricsTracker) -> ParameterCounts:
    if isinstance(adaptor, TrainFactors):
        return ParameterCounts(total=tracker.parameters, trained=adaptor.trained_parameters)
    trained = tracker.trained_parameters or tracker.parameters  # DPO's sum has the reference too
    return ParameterCounts(total=trained, trained=trained)


@contextmanager
def listings_cache_disabled() -> Iterator[None]:
    """Disable fsspec's listings cache for buckets: it never expires, and Levanter uses fsspec's file systems.

    With it, a process that has listed the checkpoints before would not see the changes of another process.
    """
    before = {store: dict(fsspec.config.conf.get(store, {})) for store in BUCKET_SCHEMES}
    for store in BUCKET_SCHEMES:
        fsspec.config.conf[store] = {**before[store], "use_listings_cache": False}
    try:
        yield
    finally:
        fsspec.config.conf.update(before)


def _begin_schedule_at(optimizer: OptimizerConfig, first_step: int) -> OptimizerConfig:
    """Let the schedule begin at `first_step` and end at the last step; the optimizer's count continues."""
    if first_step == 0:
        return optimizer
    kind = type(optimizer)

    def lr_scheduler(self: Any, num_train_steps: int, override_lr: float | None = None) -> Callable[[Any], Any]:
        schedule = kind.lr_scheduler(self, num_train_steps - first_step, override_lr)
        return lambda count: schedule(count - first_step)

    object.__setattr__(optimizer, "lr_scheduler", lr_scheduler.__get__(optimizer))
    return optimizer
