"""Levanter's adaptor, which it calls once with the trainer before the first step: hooks are added there.

The first model is evaluated, checkpoints are saved, and the trained model is exported to a fixed path at the end.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import jax
import levanter.eval
from levanter.adaptor import AdaptorConfig, NoAdaptorConfig
from levanter.main import train_lm

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.exports import export_path, is_complete, mark_complete
from marin_assets.stages.train.levanter_run.checkpointer import due_now
from marin_assets.stages.train.levanter_run.export import Export
from marin_assets.stages.train.metrics.metrics import UNTRAINED_STEP
from marin_resources.step_api.progress import checkpoint_requested, report_resumed, report_step
from marin_resources.storage.paths import join

log = logging.getLogger(__name__)


@AdaptorConfig.register_subclass("marin")
class ExportAndEvaluate(NoAdaptorConfig):
    """Add hooks for checkpoints, the export and the first evaluation. Adapts nothing: all parameters are trained."""

    def __init__(self, config: train_lm.TrainLmConfig, own: TrainLmConfig, *, resumed_at: int | None) -> None:
        self.config, self.own, self.resumed_at = config, own, resumed_at

    def install_export_hooks(self, *, trainer: Any, converter: Any, tokenizer: Any, export: Any) -> None:
        if self.resumed_at is None:
            evaluate_first(self.config, trainer, tokenizer, trainer.first_model, trainer.first_average)
            trainer.first_model = trainer.first_average = None

        folder = Export(self.own, converter, tokenizer)

        def save(info: Any, path: str) -> None:
            folder.save(info.eval_model, path)

        add_hooks(trainer, self.config, self.own, save, resumed_at=self.resumed_at)


def add_hooks(
    trainer: Any,
    config: Any,
    own: TrainLmConfig,
    save: Callable[[Any, str], None],
    *,
    resumed_at: int | None,
) -> None:
    """Add the hooks that every training has: checkpoints, and exports by `save(info, path)`.

    `config` is Levanter's, of `train_lm` or `train_dpo`.
    """
    reports = StepReports(resumed_at)

    def require_finite(info: Any, force: bool = False) -> None:
        if own.stop_on_nan and not math.isfinite(float(info.loss)):
            raise TrainError(_not_finite_sentence(float(info.loss), int(info.step), own))

    def checkpoint(info: Any, force: bool = False) -> None:
        checkpointer = config.trainer.checkpointer.created
        reports.step(int(info.step))
        with due_now(checkpointer) if reports.is_checkpoint_due() else nullcontext():
            checkpointer.on_step(tree=info.state.saveable_state, step=info.step, force=force)

    def export_at_a_step(info: Any, force: bool = False) -> None:
        path = export_path(own.output_path, info.step)
        if not is_complete(path):
            save(info, path)
            if jax.process_index() == 0:
                mark_complete(path)

    def export_at_the_end(info: Any, force: bool = False) -> None:
        if force:
            save(info, join(own.output_path, "hf"))

    trainer.add_hook(require_finite, every=1)  # before the model is exported or saved
    if own.steps_per_hf_export is not None:
        # before the checkpoint of its step: a run that resumes from that one would not come to this step again
        trainer.add_hook(export_at_a_step, every=own.steps_per_hf_export)
    trainer.add_hook(checkpoint, every=1)  # the checkpointer decides which steps to save
    trainer.add_hook(export_at_the_end, every=trainer.num_train_steps + 1)


def _not_finite_sentence(loss: float, step: int, config: TrainLmConfig) -> str:
    return (
        f"The loss is {loss} at step {step} of {config.num_train_steps}, expected a finite number: the model has "
        f"diverged at learning_rate={config.optimizer.learning_rate:g} and precision={config.precision!r}. Lower the "
        "learning rate, lengthen the warm-up or raise the precision; stop_on_nan=False trains on."
    )


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


def evaluate_first(
    config: train_lm.TrainLmConfig, trainer: Any, tokenizer: Any, model: Any, average: Any = None
) -> None:
    """Log the validation loss of the model before the first step, and that of the average of its weights, if one is
    kept: Levanter's hooks begin at step 2."""
    settings = trainer.config
    batches = settings.max_eval_batches
    evaluate = levanter.eval.cb_tagged_lm_evaluate(
        trainer.EvalBatch,
        config.data.tagged_eval_sets(config.model.max_Pos.resize(config.train_seq_len or config.model.max_seq_len)),
        tokenizer,
        trainer.device_mesh,
        trainer.compute_axis_mapping,
        batches and batches * settings.eval_batch_size,
        mp=trainer.mp,
    )
    state = SimpleNamespace(model_averaging=average)
    evaluate(SimpleNamespace(step=UNTRAINED_STEP, model=model, eval_model=average, state=state))
