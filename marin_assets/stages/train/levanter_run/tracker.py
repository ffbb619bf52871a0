"""Levanter's tracker: it writes the metrics, and logs the progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from levanter.tracker.tracker import NoopTracker, Tracker, TrackerConfig

from marin_assets.stages.train.metrics import TRAIN_ONLY, MetricsFile, NoMetrics, Progress, finite_numbers

log = logging.getLogger(__name__)


class MetricsTracker(Tracker):
    """Write Levanter's metrics to a MetricsFile."""

    name = "marin"

    def __init__(
        self,
        metrics: MetricsFile | NoMetrics,
        progress: Progress,
        *,
        finished: bool,
        of_step: Callable[[int], Mapping[str, float]] = lambda step: {},
    ) -> None:
        """`of_step` gives further metrics of a step, which are written with its loss."""
        self.metrics, self.progress, self.finished, self.of_step = metrics, progress, finished, of_step
        self.parameters = 0

    def log(self, metrics: Mapping[str, Any], *, step: int | None, commit: bool | None = None) -> None:
        kept = finite_numbers(metrics)
        if self.finished:
            # A run that resumes from its last checkpoint trains no step, but logs a loss of 0 for the last one.
            kept = {name: value for name, value in kept.items() if not name.startswith(TRAIN_ONLY)}
        if step is None or not kept:
            return
        if "train/loss" in kept:
            kept |= self.of_step(int(step))
        self.metrics.add(int(step), kept)
        if "train/loss" in kept:
            self.progress.advance(int(step), kept["train/loss"])

    def log_summary(self, metrics: Mapping[str, Any]) -> None:
        if "parameter_count" in metrics:
            self.parameters = int(metrics["parameter_count"])
            devices = jax.devices()
            kind = devices[0].device_kind
            log.info("training %d parameters on %d devices of kind %r", self.parameters, len(devices), kind)

    def log_hyperparameters(self, hparams: Mapping[str, Any]) -> None: ...

    def log_artifact(self, artifact_path: Any, *, name: str | None = None, type: str | None = None) -> None: ...

    def finish(self) -> None: ...


@TrackerConfig.register_subclass("marin")
@dataclass(init=False)
class MetricsTrackerConfig(TrackerConfig):
    """The tracker is not a field of the dataclass: Levanter copies fields, and writes them as YAML."""

    def __init__(self, tracker: MetricsTracker) -> None:
        self.tracker = tracker

    def init(self, run_id: str | None) -> Tracker:
        return self.tracker if jax.process_index() == 0 else NoopTracker()
