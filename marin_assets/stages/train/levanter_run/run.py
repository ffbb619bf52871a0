"""One run of Levanter's `train_lm`, with our config."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
from levanter.main import train_lm

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.levanter_run.adaptor import ExportAndEvaluate
from marin_assets.stages.train.levanter_run.all_hosts import evaluation_on_many_devices
from marin_assets.stages.train.levanter_run.config import build_config
from marin_assets.stages.train.levanter_run.console import logging_preserved
from marin_assets.stages.train.levanter_run.tracker import MetricsTracker, MetricsTrackerConfig
from marin_assets.stages.train.metrics import MetricsFile, NoMetrics, Progress
from marin_assets.stages.train.mixture_metrics import mixture_metrics
from marin_resources.storage.paths import BUCKET_SCHEMES


def run_levanter(
    config: TrainLmConfig, metrics: MetricsFile | NoMetrics, *, tokenizer: str, log_dir: str, resumed_at: int | None
) -> int:
    """Train and export. Returns the number of parameters. `resumed_at` is the step of the last checkpoint, or None."""
    levanter_config = build_config(config, tokenizer=tokenizer, log_dir=log_dir)
    levanter_config.trainer.checkpointer.before_each = metrics.save
    progress = Progress(config.num_train_steps, config.train_batch_size * config.model.max_seq_len)
    tracker = MetricsTracker(
        metrics, progress, finished=resumed_at == config.num_train_steps - 1, of_step=mixture_metrics(config.mixture)
    )
    levanter_config.trainer.tracker = MetricsTrackerConfig(tracker)
    levanter_config.adapter = ExportAndEvaluate(levanter_config, config, resumed_at=resumed_at)
    with logging_preserved(), listings_cache_disabled(), evaluation_on_many_devices(), warnings.catch_warnings():
        # For a second run in one process: Levanter cannot remove the tracker of the first.
        warnings.filterwarnings("ignore", message="Global tracker is already set")
        train_lm.main(levanter_config)
        levanter_config.trainer.checkpointer.created.wait_until_finished()
    return tracker.parameters


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
