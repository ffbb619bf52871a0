"""A run of Levanter's with our config, tracker and checkpointer: that of `train_lm`, and what others share with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from levanter.main import train_lm

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.levanter_run.adaptor import ExportAndEvaluate
from marin_assets.stages.train.levanter_run.all_hosts import evaluation_on_many_devices
from marin_assets.stages.train.levanter_run.config import build_config
from marin_assets.stages.train.levanter_run.console import logging_preserved
from marin_assets.stages.train.levanter_run.lora import TrainFactors
from marin_assets.stages.train.levanter_run.tracker import MetricsTracker, MetricsTrackerConfig
from marin_assets.stages.train.metrics import MetricsFile, NoMetrics, ParameterCounts, Progress
from marin_resources.storage.paths import BUCKET_SCHEMES


def run_levanter(
    config: TrainLmConfig, metrics: MetricsFile | NoMetrics, *, tokenizer: str, log_dir: str, resumed_at: int | None
) -> ParameterCounts:
    """Train and export. Returns the numbers of parameters. `resumed_at` is the step of the last checkpoint, or None."""
    levanter_config = build_config(config, tokenizer=tokenizer, log_dir=log_dir)
    adaptor = TrainFactors if config.lora else ExportAndEvaluate
    levanter_config.adapter = adaptor(levanter_config, config, resumed_at=resumed_at)
    return run_main(train_lm.main, levanter_config, config, metrics, resumed_at=resumed_at)


def run_main(
    main: Callable[[Any], None],
    levanter_config: Any,
    config: TrainLmConfig,
    metrics: MetricsFile | NoMetrics,
    *,
    resumed_at: int | None,
    initial_evaluation_at: int | None = None,
) -> ParameterCounts:
    """Run a `main` of Levanter's with our tracker and checkpointer, and wait for the last checkpoint.

    `initial_evaluation_at`: the step at which `main` logs its evaluation of the untrained model.
    """
    levanter_config.trainer.checkpointer.before_each = metrics.save
    progress = Progress(config.num_train_steps, config.train_batch_size * config.model.max_seq_len)
    tracker = MetricsTracker(
        metrics,
        progress,
        finished=resumed_at == config.num_train_steps - 1,
        initial_evaluation_at=initial_evaluation_at,
    )
    levanter_config.trainer.tracker = MetricsTrackerConfig(tracker)
    with logging_preserved(), listings_cache_disabled(), evaluation_on_many_devices(), warnings.catch_warnings():
        # For a second run in one process: Levanter cannot remove the tracker of the first.
        warnings.filterwarnings("ignore", message="Global tracker is already set")
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
