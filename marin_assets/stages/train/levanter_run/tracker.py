"""Levanter's tracker: it writes the metrics, and logs the progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from levanter.tracker.tracker import NoopTracker, Tracker, TrackerConfig
from rigging.log_setup import configure_logging

from marin_assets.stages.train.metrics.metrics import (
    PEAK,
    TIMES,
    TRAIN_ONLY,
    UNTRAINED_STEP,
    MetricsFile,
    NoMetrics,
    Progress,
    numbers_to_keep,
)
from marin_resources.step_api.progress import report_numbers

LOG_LEVELS = {
    # It warns that a cache does not name the tokenizer's path. Ours name its digest, which check_inputs compares.
    "levanter.store.cache": logging.ERROR,
    "fray.device_flops": logging.ERROR,  # it warns that it knows no speed of a CPU
    "tqdm_loggable.tqdm_logging": logging.ERROR,  # progress bars as log lines; `Progress` logs the progress
    "jax.experimental.array_serialization.serialization": logging.WARNING,  # six lines a checkpoint
    "jax._src.xla_bridge": logging.WARNING,  # the devices that it looked for and did not find
}
REPEATED = {
    "levanter.tensorstore_serialization": "Unknown leaf type <class 'NoneType'>",  # one for each None of the state
    "levanter.checkpoint": "Saving checkpoint",  # three lines before "Saved checkpoint"
}
"""Logger -> the beginning of messages that come many times without information. Its other messages stay."""

SHOWN = {
    "train/loss": "loss",
    "grad/norm/total": "gradient_norm",
    "optim/learning_rate": "learning_rate",
    "throughput/tokens_per_second": "tokens_per_second",
    "throughput/mfu": "mfu_percent",
    "mixture/weight/": "",
    "rl/reward": "reward",
}
"""Levanter's names -> ours, of the numbers that people look at while it trains. Weights of a mixture keep theirs."""

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
        initial_evaluation_at: int | None = None,
        validation_loss: str = "eval/loss",
        of_step: Callable[[int], Mapping[str, float]] = lambda step: {},
    ) -> None:
        """`of_step` gives further metrics of a step, which are written with its loss. `validation_loss`: the metric of
        the model that is exported."""
        self.metrics, self.progress, self.finished, self.of_step = metrics, progress, finished, of_step
        self.initial_evaluation_at = initial_evaluation_at
        self.shown = {**SHOWN, validation_loss: "validation_loss"}
        self.parameters = self.trained_parameters = 0
        self.peak: dict[str, float] = {}
        self.latest: dict[str, float] = {}
        self.row_of: int | None = None
        """The step of the last row."""

    def log(self, metrics: Mapping[str, Any], *, step: int | None, commit: bool | None = None) -> None:
        kept = numbers_to_keep(metrics)
        if self.finished:
            # A run that resumes from its last checkpoint trains no step, but logs a loss of 0 for the last one.
            kept = {name: value for name, value in kept.items() if not name.startswith(TRAIN_ONLY)}
        if step is None or not kept:
            return
        if step == self.initial_evaluation_at and all(name.startswith("eval/") for name in kept):
            step = UNTRAINED_STEP
        if kept.keys() <= TIMES and step != self.row_of:
            return
        if "train/loss" in kept:
            kept |= {**self.of_step(int(step)), **self.peak}
        self.row_of = step
        self.metrics.add(int(step), kept)
        shown = {
            self.shown.get(name, name): value for name, value in kept.items() if name.startswith(tuple(self.shown))
        }
        self.latest = {**self.latest, **shown}  # a new one: another thread may be reading the last
        report_numbers(self.latest, of=self.progress.steps)
        if "train/loss" in kept:
            self.progress.advance(int(step), kept["train/loss"])

    def log_summary(self, metrics: Mapping[str, Any]) -> None:
        if PEAK in metrics:  # of the devices of this attempt: the next one may have others
            self.peak = {PEAK: float(metrics[PEAK])}
        if "parameter_count" in metrics:
            self.parameters = int(metrics["parameter_count"])
            self.trained_parameters = int(metrics.get("trainable_parameter_count", 0))
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


class _WithoutMessage(logging.Filter):
    """Leaves out the messages that begin with a text."""

    def __init__(self, begin: str) -> None:
        super().__init__()
        self._begin = begin

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(self._begin)


@contextmanager
def logging_preserved() -> Iterator[None]:
    """Keep the process's log handlers: Levanter's set-up removes them at first, and adds a file handler each time."""
    root = logging.getLogger()
    loggers = (root, *map(logging.getLogger, LOG_LEVELS))
    handlers, levels = root.handlers[:], {logger: logger.level for logger in loggers}
    configure_logging(root.level)
    root.handlers[:] = handlers
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    filters = {logging.getLogger(name): _WithoutMessage(begin) for name, begin in REPEATED.items()}
    for logger, repeated in filters.items():
        logger.addFilter(repeated)
    try:
        yield
    finally:
        for logger, repeated in filters.items():
            logger.removeFilter(repeated)
        for added in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(added)
            added.close()
        for logger, level in levels.items():
            logger.setLevel(level)
