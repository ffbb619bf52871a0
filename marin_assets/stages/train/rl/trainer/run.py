"""A run of Levanter's trainer on batches that the model itself has drawn. Importing this imports jax."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import haliax as hax
import jax
import levanter
from haliax.partitioning import named_jit
from levanter.callbacks import StepInfo
from levanter.utils.jax_utils import parameter_count

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.inputs.starting_point import StartingPoint
from marin_assets.stages.train.levanter_run.adaptor import add_hooks
from marin_assets.stages.train.levanter_run.config import build_config
from marin_assets.stages.train.levanter_run.devices.memory import require_room_on_devices
from marin_assets.stages.train.levanter_run.export import Export
from marin_assets.stages.train.levanter_run.initial_weights import BeginningTrainer, load_hf_weights
from marin_assets.stages.train.levanter_run.run import run_main
from marin_assets.stages.train.metrics.metrics import MetricsFile, NoMetrics, ParameterCounts
from marin_assets.stages.train.rl.batch import Arrays
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.sampling.samplers import Samplers
from marin_assets.stages.train.rl.trainer.loop import Loop, Trained
from marin_assets.stages.train.rl.trainer.loss import Batch, loss_function, token_logprobs
from marin_assets.stages.train.vocabulary import rows_of

OF_THE_LOSS = ("ratio_mean", "ratio_max", "mismatch_max", "bound_share", "k3_of_sampler", "kl", "entropy")


def run_levanter_rl(
    training: TrainLmConfig,
    metrics: MetricsFile | NoMetrics,
    *,
    config: TrainRlConfig,
    samplers: Samplers | None,
    tokenizer: str,
    log_dir: str,
    resumed_at: int | None,
    start: StartingPoint,
    validation_loss: str,
) -> ParameterCounts:
    """Train and export. Returns the numbers of parameters. `resumed_at` is the step of the last checkpoint, or None."""
    built = build_config(training, tokenizer=tokenizer, log_dir=log_dir)
    require_room_on_devices(training, built.model, tokenizer, jax.devices())
    run = _Run(config, training, built, samplers, metrics, log_dir=log_dir, resumed_at=resumed_at, start=start)
    return run_main(run.main, built, training, metrics, resumed_at=resumed_at, validation_loss=validation_loss)


@dataclass(eq=False)
class _Run:
    config: TrainRlConfig
    training: TrainLmConfig
    built: Any
    samplers: Samplers | None
    metrics: Any
    log_dir: str
    resumed_at: int | None
    start: StartingPoint

    def main(self, levanter_config: Any) -> None:
        """In the place of a `main` of Levanter's."""
        levanter.initialize(levanter_config)
        settings = levanter_config.trainer
        loss = loss_function(
            self.config.objective, temperature=self.config.temperature, max_tokens=self.config.max_tokens
        )
        optimizer = levanter_config.optimizer.build(settings.num_train_steps)
        with self._trainer_class()(settings, optimizer, loss) as trainer:
            key = jax.random.split(jax.random.PRNGKey(settings.seed), 4)[3]
            state = trainer.initial_state(key)
            trainer.first_model = trainer.first_average = None  # the untrained model is not evaluated
            levanter.tracker.log_summary({"parameter_count": parameter_count(state.model)})
            self._add_hooks(trainer, levanter_config)
            loop = Loop(
                self.config,
                self.samplers,
                partial(self._train, trainer, self._reference(trainer)),
                lambda step, metrics: levanter.tracker.log(metrics, step=step),
                positions=self.config.max_length or levanter_config.model.max_seq_len,
                first_step=int(state.step),
            )
            state = loop.run(state)
            trainer.run_hooks(StepInfo(state, 0.0, 0.0), force=True)

    def _trainer_class(self) -> type[BeginningTrainer]:
        fields = {
            "model_config": self.built.model,
            "start": self.start,
            "vocab_size": rows_of(self.training.model),
            "is_resumed": self.resumed_at is not None,
            "folder": self.log_dir,
        }
        return type("Trainer", (BeginningTrainer,), fields)

    def _add_hooks(self, trainer: Any, levanter_config: Any) -> None:
        if (samplers := self.samplers) is not None:
            # before the hook that saves a checkpoint: one that resumes there samples with the weights before it
            trainer.add_hook(lambda info: samplers.weights.settle(), every=1)
        tokenizer = levanter_config.data.the_tokenizer
        converter = levanter_config.model.hf_checkpoint_converter().replaced(tokenizer=tokenizer)
        export = Export(self.training, converter, tokenizer)

        def save(info: Any, path: str) -> None:
            export.save(info.eval_model, path)

        add_hooks(trainer, levanter_config, self.training, save, resumed_at=self.resumed_at)

    def _reference(self, trainer: Any) -> Any:
        """The function of tokens that gives their log-probabilities by the model at the start; None without KL."""
        if not self.config.objective.kl_weight:
            return None
        folder = os.path.join(self.log_dir, "reference")
        os.makedirs(folder)
        mapping = trainer.parameter_axis_mapping
        model = load_hf_weights(self.start.path, self.built.model, trainer.mp.compute_dtype, mapping, folder)

        @named_jit(axis_resources=trainer.compute_axis_mapping)
        def logprobs(model: Any, tokens: Any) -> Any:
            return token_logprobs(model, tokens, self.config.temperature)[0]

        return partial(logprobs, model)

    def _train(self, trainer: Any, reference: Any, state: Any, arrays: Arrays) -> Trained:
        rows, positions = arrays.tokens.shape
        axes = (hax.Axis(trainer.config.batch_axis_name, rows), hax.Axis("position", positions))
        of_reference = arrays.drawn_logprobs * 0 if reference is None else reference(arrays.tokens)
        batch = Batch(
            tokens=hax.named(arrays.tokens, axes),
            mask=hax.named(arrays.mask, axes),
            drawn_logprobs=hax.named(arrays.drawn_logprobs, axes),
            reference_logprobs=hax.named(of_reference, axes),
            advantages=hax.named(arrays.advantages, axes[0]),
        )
        batch = hax.shard(jax.tree.map(jax.numpy.asarray, batch), trainer.compute_axis_mapping)
        info = trainer.train_step(state, batch)
        row = self.metrics.rows[-1]
        measured = {name: row[f"train/{name}"] for name in OF_THE_LOSS if f"train/{name}" in row}
        return Trained(state=info.state, loss=info.loss, seconds=info.step_duration, metrics=measured)
