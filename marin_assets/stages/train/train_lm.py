"""Train a Llama from scratch with Levanter.

In:  token caches (outputs of tokenize) and the tokenizer they were made with.
Out, below the output path:
     hf/             the trained model as a Hugging Face folder, tokenizer included: what evaluation and serving read
     checkpoints/    step-N: model and optimizer after step N; the last is kept, and every `steps_per_checkpoint`th
     metrics.jsonl   one row a step (`metrics.py`)
     plots/loss.png  train and validation loss

The same call after a crash goes on from the last checkpoint, to the same weights bit for bit on the same hardware.
On a disk and in a bucket (gs://, s3://) the outputs are the same, but for names that TensorStore draws by chance.
Runs on what jax finds: TPU, GPU or CPU. Asks no hub: nothing is read but the caches and the tokenizer folder.
Levanter needs local folders for the tokenizer and its log, so a temporary folder is made for these.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.stages.train.checkpoints import last_checkpoint_step, remove_unfinished
from marin_assets.stages.train.inputs import check_inputs, stage_tokenizer
from marin_assets.stages.train.loss_plot import plot_losses
from marin_assets.stages.train.metrics import UNTRAINED_STEP, MetricsFile, Row, read_metrics
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.paths import join

CHECKPOINTS, EXPORT, METRICS, PLOT = "checkpoints", "hf", "metrics.jsonl", "plots/loss.png"
MIN_HEAD_DIM = 32
"""vLLM's attention on CPUs knows no smaller one (vLLM 0.32), so a smaller model could not be served."""
LAST_STEPS = 10

log = logging.getLogger(__name__)


class TrainError(ValueError):
    """A training run that cannot be made as asked: one sentence."""


@dataclass(frozen=True, kw_only=True)
class LlamaSpec:
    """Shape of the model: Levanter's LlamaConfig, of which the rest is left at its defaults."""

    max_seq_len: int = versioned(128)
    hidden_dim: int = versioned(64)
    intermediate_dim: int = versioned(192)
    num_layers: int = versioned(2)
    num_heads: int = versioned(2)
    num_kv_heads: int = versioned(1)
    tie_word_embeddings: bool = versioned(True)


@dataclass(frozen=True, kw_only=True)
class OptimizerSpec:
    """Levanter's AdamConfig: AdamW with gradients clipped to norm 1."""

    learning_rate: float = versioned(7e-3)
    weight_decay: float = versioned(0.0)
    warmup: float = versioned(0.1)
    """Share of the steps in which the learning rate rises."""
    lr_schedule: str = versioned("cosine")
    min_lr_ratio: float = versioned(0.1)


@dataclass(frozen=True, kw_only=True)
class TrainLmConfig:
    components: dict[str, str]
    """Name -> path of a tokenized output."""
    tokenizer_path: str
    """Folder of the tokenizer that made the caches."""
    output_path: str = THIS_OUTPUT_PATH
    train_weights: dict[str, float] | None = versioned(None)
    """Name -> share of the training sequences; None gives each component the weight of its tokens."""
    model: LlamaSpec = field(default_factory=LlamaSpec)
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    num_train_steps: int = versioned(400)
    train_batch_size: int = versioned(16)
    """Sequences a step."""
    seed: int = versioned(0)
    precision: str = versioned("p=f32,c=f32")
    """jmp policy: parameters and compute. "p=f32,c=bfloat16" on accelerators."""
    steps_per_eval: int = 100
    max_eval_batches: int | None = 16
    """Batches of each component's validation side that an evaluation reads; None reads all."""
    steps_per_checkpoint: int = 1000
    """Checkpoints that are kept."""
    checkpoint_interval_s: float = 600
    """A checkpoint to resume from, at most this many seconds old; the next one replaces it."""
    compilation_cache_dir: str | None = "~/.cache/marin/jax"
    """Where jax keeps what it compiled, for all runs of this machine: 7 of the 37 s of a nano run. None: nowhere."""


def train_lm(config: TrainLmConfig) -> dict[str, Any]:
    """Train, or go on with what an earlier call began, and export.

    Returns steps, parameters, head_dim, tokens_seen, tokens_per_second (median over the steps), loss_start and loss_end
    (validation loss of the untrained and the trained model, nats a token, on the same batches), loss_ratio (end /
    start), train_loss_end (mean of the last 10 steps), model_path, plots, resumed_from_step (the checkpoint's, or
    None). Raises TrainError for a shape that cannot be built, InputError for caches that do not fit.
    """
    check_shape(config)
    check_inputs(config.components, config.train_weights, config.tokenizer_path, config.model.max_seq_len)
    from marin_assets.stages.train import levanter_run
    from marin_resources.storage.mirror import local_path_of

    # TensorStore reads plain paths alone; what lies in another region is copied here, on the step's budget.
    config = replace(config, components={name: local_path_of(path) for name, path in config.components.items()})
    checkpoints = join(config.output_path, CHECKPOINTS)
    remove_unfinished(checkpoints)
    done = last_checkpoint_step(checkpoints)
    if done is not None:
        log.info("resuming from the checkpoint of step %d of %d", done, config.num_train_steps)
    metrics = MetricsFile(join(config.output_path, METRICS), keep_up_to=done)
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="marin-train-") as folder:
            tokenizer = stage_tokenizer(config.tokenizer_path, join(folder, "tokenizer"))
            parameters = levanter_run.run(config, metrics, tokenizer=tokenizer, log_dir=folder, resumed_at=done)
    finally:
        metrics.close()
    remove_unfinished(checkpoints, also_temporary=True)
    log.info("trained and exported in %.1f s", time.monotonic() - started)
    rows = read_metrics(metrics.path)
    plot_losses(rows, join(config.output_path, PLOT))
    return _result(config, rows, parameters, done)


def check_shape(config: TrainLmConfig) -> None:
    """Raises TrainError for a model or a schedule that no run could use."""
    model = config.model
    if model.num_heads % model.num_kv_heads:
        raise TrainError(
            f"num_heads is {model.num_heads} and num_kv_heads {model.num_kv_heads}, "
            "expected a multiple of it. Change one of them."
        )
    if model.hidden_dim % model.num_heads or model.hidden_dim // model.num_heads < MIN_HEAD_DIM:
        raise TrainError(
            f"hidden_dim={model.hidden_dim} over num_heads={model.num_heads} makes heads of "
            f"{model.hidden_dim / model.num_heads:g}, expected a whole number of at least {MIN_HEAD_DIM} so that vLLM "
            "can serve the model. Use fewer heads or a larger hidden_dim."
        )
    if config.num_train_steps < 2:
        raise TrainError(f"num_train_steps is {config.num_train_steps}, expected at least 2: Levanter exports no less.")


def _result(config: TrainLmConfig, rows: list[Row], parameters: int, done: int | None) -> dict[str, Any]:
    validation = {row["step"]: row["eval/loss"] for row in rows if "eval/loss" in row}
    start, end = validation[UNTRAINED_STEP], validation[config.num_train_steps - 1]
    rates = [row["throughput/tokens_per_second"] for row in rows if "throughput/tokens_per_second" in row]
    train_losses = [row["train/loss"] for row in rows if "train/loss" in row]
    return {
        "steps": config.num_train_steps,
        "parameters": parameters,
        "head_dim": config.model.hidden_dim // config.model.num_heads,
        "tokens_seen": config.num_train_steps * config.train_batch_size * config.model.max_seq_len,
        "tokens_per_second": statistics.median(rates),
        "loss_start": start,
        "loss_end": end,
        "loss_ratio": end / start,
        "train_loss_end": statistics.fmean(train_losses[-LAST_STEPS:]),
        "model_path": EXPORT,
        "plots": [PLOT],
        "resumed_from_step": done,
    }
