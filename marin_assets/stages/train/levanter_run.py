"""One run of Levanter's `train_lm`, with our config. Importing this module imports jax and Levanter (3 s).

It extends Levanter at its own extension points:
* a tracker, which writes the metrics and logs the progress;
* an adaptor, which Levanter calls once with the trainer before the first step: it evaluates the untrained model, and
  exports the trained model to a fixed path at the end;
* a checkpointer config. A checkpoint begins after the evaluation of its step and after the metrics are saved, so a
  resumed run loses no metrics; and the run can wait for the last checkpoint, which is written in the background.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import haliax as hax
import jax
import jmp
import levanter.eval
import levanter.tracker
from haliax.partitioning import named_jit, round_axis_for_partitioning
from levanter.adaptor import AdaptorConfig, NoAdaptorConfig
from levanter.checkpoint import Checkpointer, CheckpointerConfig
from levanter.data.text import DatasetComponent, LmDataConfig
from levanter.distributed import DistributedConfig
from levanter.main import train_lm
from levanter.models.llama import LlamaConfig
from levanter.optim import AdamConfig
from levanter.tracker.tracker import NoopTracker, Tracker, TrackerConfig
from levanter.trainer import TrainerConfig
from rigging.log_setup import configure_logging

from marin_assets.stages.train.all_hosts import evaluation_on_many_devices
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.exports import export_path, is_complete, mark_complete
from marin_assets.stages.train.inputs import count_tokens
from marin_assets.stages.train.metrics import (
    TRAIN_ONLY,
    UNTRAINED_STEP,
    MetricsFile,
    NoMetrics,
    Progress,
    finite_numbers,
)
from marin_resources.progress import checkpoint_requested, report_checkpoint, report_resumed, report_step
from marin_resources.storage.paths import BUCKET_SCHEMES, join

JAX_CONFIG = {
    "jax_threefry_partitionable": True,  # Levanter's two defaults, which this dict replaces
    "jax_softmax_custom_jvp": True,
    # The default caches only functions that compile for over 1 s: 3 of the 60 of a nano run.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}

log = logging.getLogger(__name__)

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
"""Logger -> the beginning of messages that come many times and tell nothing. Its other messages stay."""


def run(
    config: TrainLmConfig, metrics: MetricsFile | NoMetrics, *, tokenizer: str, log_dir: str, resumed_at: int | None
) -> int:
    """Train and export. Returns the number of parameters. `resumed_at` is the step of the last checkpoint, or None."""
    levanter_config = build_config(config, tokenizer=tokenizer, log_dir=log_dir)
    levanter_config.trainer.checkpointer.before_each = metrics.save
    progress = Progress(config.num_train_steps, config.train_batch_size * config.model.max_seq_len)
    tracker = MetricsTracker(metrics, progress, finished=resumed_at == config.num_train_steps - 1)
    levanter_config.trainer.tracker = MetricsTrackerConfig(tracker)
    levanter_config.adapter = ExportAndEvaluate(levanter_config, config, resumed_at=resumed_at)
    with _logging_preserved(), listings_cache_disabled(), evaluation_on_many_devices(), warnings.catch_warnings():
        # For a second run in one process: Levanter cannot remove the tracker of the first.
        warnings.filterwarnings("ignore", message="Global tracker is already set")
        train_lm.main(levanter_config)
        levanter_config.trainer.checkpointer.created.wait_until_finished()
    return tracker.parameters


def build_config(config: TrainLmConfig, *, tokenizer: str, log_dir: str) -> train_lm.TrainLmConfig:
    """Return Levanter's config. Fields that are not set here keep Levanter's defaults."""
    model, optimizer = config.model, config.optimizer
    weights = config.train_weights or {n: float(count_tokens(p, "train")) for n, p in config.components.items()}
    cache_dir = config.compilation_cache_dir
    return train_lm.TrainLmConfig(
        data=LmDataConfig(
            tokenizer=tokenizer,
            cache_dir=None,
            auto_build_caches=False,
            shuffle=True,
            permutation_type="feistel",
            components={name: DatasetComponent(cache_dir=path) for name, path in config.components.items()},
            train_weights=weights,
        ),
        model=LlamaConfig(
            max_seq_len=model.max_seq_len,
            hidden_dim=model.hidden_dim,
            intermediate_dim=model.intermediate_dim,
            num_layers=model.num_layers,
            num_heads=model.num_heads,
            num_kv_heads=model.num_kv_heads,
            tie_word_embeddings=model.tie_word_embeddings,
            gradient_checkpointing=False,
            # A local folder: without one, the export loads Llama 2 from the hub.
            reference_checkpoint=tokenizer,
            tokenizer=tokenizer,
        ),
        optimizer=AdamConfig(
            learning_rate=optimizer.learning_rate,
            weight_decay=optimizer.weight_decay,
            warmup=optimizer.warmup,
            lr_schedule=optimizer.lr_schedule,
            min_lr_ratio=optimizer.min_lr_ratio,
        ),
        trainer=TrainerConfig(
            id="train",
            seed=config.seed,
            mp=jmp.get_policy(config.precision),
            num_train_steps=config.num_train_steps,
            train_batch_size=config.train_batch_size,
            steps_per_eval=config.steps_per_eval,
            max_eval_batches=config.max_eval_batches,
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
            ),
            jax_config=JAX_CONFIG,
            jax_compilation_cache_dir=os.path.expanduser(cache_dir) if cache_dir else None,
        ),
    )


@dataclass
class LateCheckpointerConfig(CheckpointerConfig):
    """Create a checkpointer for `ExportAndEvaluate`. The trainer's own hook runs too early, so it gets a no-op."""

    def create(self, run_id: str) -> Any:
        self.created: Checkpointer = super().create(run_id)
        save = self.created.save_checkpoint

        def save_after_metrics(*args: Any, step: int, commit_callback: Callable[[], None], **kwargs: Any) -> None:
            def committed() -> None:
                commit_callback()
                report_checkpoint(step)

            self.before_each()
            save(*args, step=step, commit_callback=committed, **kwargs)

        self.created.save_checkpoint = save_after_metrics  # type: ignore[method-assign]
        return NoCheckpointer()

    def before_each(self) -> None:
        """Called before each checkpoint. `run` replaces it; it is not a field, because Levanter copies fields."""


class NoCheckpointer:
    def on_step(self, **state: Any) -> None: ...


class MetricsTracker(Tracker):
    """Write Levanter's metrics to a MetricsFile."""

    name = "marin"

    def __init__(self, metrics: MetricsFile | NoMetrics, progress: Progress, *, finished: bool) -> None:
        self.metrics, self.progress, self.finished = metrics, progress, finished
        self.parameters = 0

    def log(self, metrics: Mapping[str, Any], *, step: int | None, commit: bool | None = None) -> None:
        kept = finite_numbers(metrics)
        if self.finished:
            # A run that resumes from its last checkpoint trains no step, but logs a loss of 0 for the last one.
            kept = {name: value for name, value in kept.items() if not name.startswith(TRAIN_ONLY)}
        if step is None or not kept:
            return
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


@AdaptorConfig.register_subclass("marin")
class ExportAndEvaluate(NoAdaptorConfig):
    """Add hooks for checkpoints, the export and the first evaluation. Adapts nothing: all parameters are trained."""

    def __init__(self, config: train_lm.TrainLmConfig, own: TrainLmConfig, *, resumed_at: int | None) -> None:
        self.config, self.own, self.resumed_at = config, own, resumed_at

    def install_export_hooks(self, *, trainer: Any, converter: Any, tokenizer: Any, export: Any) -> None:
        if self.resumed_at is None:
            _evaluate_untrained(self.config, trainer, tokenizer)

        reports = StepReports(self.resumed_at)

        def checkpoint(info: Any, force: bool = False) -> None:
            checkpointer = self.config.trainer.checkpointer.created
            reports.step(int(info.step))
            with _due_now(checkpointer) if reports.is_checkpoint_due() else nullcontext():
                checkpointer.on_step(tree=info.state.saveable_state, step=info.step, force=force)

        def save(info: Any, path: str) -> None:
            converter.save_pretrained(info.eval_model, path, generation_config=export.generation_config)

        def export_at_a_step(info: Any, force: bool = False) -> None:
            path = export_path(self.own.output_path, info.step)
            if not is_complete(path):
                save(info, path)
                if jax.process_index() == 0:
                    mark_complete(path)

        def export_at_the_end(info: Any, force: bool = False) -> None:
            if force:
                save(info, join(self.own.output_path, "hf"))

        if self.own.steps_per_hf_export is not None:
            # before the checkpoint of its step: a run that resumes from that one would not come to this step again
            trainer.add_hook(export_at_a_step, every=self.own.steps_per_hf_export)
        trainer.add_hook(checkpoint, every=1)  # the checkpointer decides which steps to save
        trainer.add_hook(export_at_the_end, every=trainer.num_train_steps + 1)


class StepReports:
    """Reports each training step on its host, and heeds a request for a checkpoint once."""

    def __init__(self, resumed_at: int | None) -> None:
        self._resumed_at = resumed_at
        self._has_begun = self._is_answered = False

    def step(self, step: int) -> None:
        if not self._has_begun:  # what was before the end of the first step is compilation, for the most part
            self._has_begun = True
            report_resumed(self._resumed_at)
        report_step(step)

    def is_checkpoint_due(self) -> bool:
        """Whether one was requested now. Host 0 decides for all: Levanter broadcasts its decision."""
        if self._is_answered or jax.process_index() > 0 or not checkpoint_requested():
            return False
        self._is_answered = True
        log.info("saving a checkpoint at once: a host of this training is about to be taken away")
        return True


@contextmanager
def _due_now(checkpointer: Checkpointer) -> Iterator[None]:
    """Let the next temporary checkpoint be due, while the block runs."""
    interval, checkpointer.save_interval = checkpointer.save_interval, timedelta(0)
    try:
        yield
    finally:
        checkpointer.save_interval = interval


def _evaluate_untrained(config: train_lm.TrainLmConfig, trainer: Any, tokenizer: Any) -> None:
    """Log the validation loss of the untrained model: Levanter's hooks begin at step 2."""
    settings = trainer.config
    model_key = jax.random.split(jax.random.PRNGKey(settings.seed), 4)[2]  # as train_lm.main splits it
    Vocab = round_axis_for_partitioning(hax.Axis("vocab", len(tokenizer)), trainer.parameter_axis_mapping)
    model = named_jit(
        lambda key: trainer.mp.cast_to_param(config.model.build(Vocab, key=key)),
        axis_resources=trainer.parameter_axis_mapping,
    )(model_key)
    batches = settings.max_eval_batches
    evaluate = levanter.eval.cb_tagged_lm_evaluate(
        trainer.EvalBatch,
        config.data.tagged_eval_sets(config.model.max_Pos),
        tokenizer,
        trainer.device_mesh,
        trainer.compute_axis_mapping,
        batches and batches * settings.eval_batch_size,
        mp=trainer.mp,
    )
    evaluate(SimpleNamespace(step=UNTRAINED_STEP, model=model, state=SimpleNamespace(model_averaging=None)))


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


class _WithoutMessage(logging.Filter):
    """Leaves out the messages that begin with a text."""

    def __init__(self, begin: str) -> None:
        super().__init__()
        self._begin = begin

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(self._begin)


@contextmanager
def _logging_preserved() -> Iterator[None]:
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
