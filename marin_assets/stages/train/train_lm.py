"""Train a Llama from scratch with Levanter.

In:  token caches (outputs of tokenize) and their tokenizer.
Out, below the output path:
     hf/             the trained model as a Hugging Face folder with the tokenizer, for evaluation and serving
     checkpoints/    step-N: model and optimizer after step N; the last and every `steps_per_checkpoint`th are kept
     exports/        with `steps_per_hf_export`: the model in training as such folders (`exports.py`)
     metrics.jsonl   one row a step (`metrics.py`)
     plots/loss.png  train and validation loss

The same call after a crash resumes from the last checkpoint, and gives the same weights bit for bit on the same
hardware. Outputs on a disk and in a bucket (gs://, s3://) are equal, except for random file names of TensorStore.
It runs on the devices that jax finds: TPU, GPU or CPU; on all hosts of a slice as one job. It uses no hub, and reads
only the caches and the tokenizer folder. Levanter needs local folders for the tokenizer and its log, so these are in a
temporary folder.
"""

from __future__ import annotations

import itertools
import logging
import statistics
import tempfile
import time
from dataclasses import replace
from typing import Any

from marin_assets.stages.train.checkpoints import last_checkpoint_step, remove_unfinished
from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.exports import remove_unfinished_exports
from marin_assets.stages.train.inputs import check_inputs, expand_snapshots, stage_tokenizer
from marin_assets.stages.train.loss_plot import plot_losses
from marin_assets.stages.train.metrics import UNTRAINED_STEP, MetricsFile, NoMetrics, Row, read_metrics
from marin_assets.stages.train.mixture_inputs import at_paths, checked_mixture, mixture_table
from marin_resources.hosts import host_index
from marin_resources.storage.paths import join

KINDS = ("levanter", "jax")

__all__ = ["LlamaSpec", "OptimizerSpec", "TrainError", "TrainLmConfig", "check_shape", "train_lm"]

CHECKPOINTS, EXPORT, METRICS, PLOT = "checkpoints", "hf", "metrics.jsonl", "plots/loss.png"
MIN_HEAD_DIM = 32
"""vLLM's attention on CPUs supports no smaller dimension (vLLM 0.32), so it could not serve a smaller model."""
LAST_STEPS = 10
CURVE_POINTS = 40

log = logging.getLogger(__name__)


def train_lm(config: TrainLmConfig) -> dict[str, Any]:
    """Train, or resume training from the last checkpoint, and export.

    Returns steps, parameters, head_dim, tokens_seen, tokens_per_second (median over the steps), loss_start and loss_end
    (validation loss of the untrained and the trained model, nats a token, on the same batches), loss_ratio (end /
    start), train_loss_end (mean of the last 10 steps), loss_curve (means of the training loss over 40 equal parts of
    the steps), model_path, plots, resumed_from_step (the checkpoint's step, or None); on other hosts than the first,
    nothing. Raises TrainError for an invalid shape, or if the step requests a TPU or GPU and jax finds none; InputError
    for caches that do not match.
    """
    check_shape(config)
    if config.mixture is not None:
        config = replace(config, mixture=checked_mixture(config, config.mixture))
    else:
        config = replace(config, components=expand_snapshots(config.components))
        check_inputs(config.components, config.train_weights, config.tokenizer_path, config.model.max_seq_len)
    from marin_assets.stages.train.levanter_run import all_hosts  # jax and Levanter take 3 s to import
    from marin_assets.stages.train.levanter_run.run import run_levanter
    from marin_resources.storage.mirror import local_path_of  # 0.4 s to import

    # TensorStore reads plain paths only. Caches in another region are copied to this one, within the step's budget.
    config = replace(config, components={name: local_path_of(path) for name, path in config.components.items()})
    if config.mixture is not None:
        config = replace(config, mixture=at_paths(config.mixture, local_path_of))
    checkpoints = join(config.output_path, CHECKPOINTS)
    all_hosts.join_hosts()

    def remove_leftovers() -> None:
        remove_unfinished(checkpoints)
        remove_unfinished_exports(config.output_path)

    all_hosts.on_host_0(remove_leftovers)
    done = last_checkpoint_step(checkpoints)
    if done is not None:
        log.info("resuming from the checkpoint of step %d of %d", done, config.num_train_steps)
    metrics_path = join(config.output_path, METRICS)
    metrics = MetricsFile(metrics_path, keep_up_to=done) if host_index() == 0 else NoMetrics()
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="marin-train-") as folder:
            tokenizer = stage_tokenizer(config.tokenizer_path, join(folder, "tokenizer"))
            parameters = run_levanter(config, metrics, tokenizer=tokenizer, log_dir=folder, resumed_at=done)
    finally:
        metrics.close()
    log.info("trained and exported in %.1f s", time.monotonic() - started)
    if host_index() > 0:
        return {}
    remove_unfinished(checkpoints, also_temporary=True)
    rows = read_metrics(metrics_path)
    plot_losses(rows, join(config.output_path, PLOT))
    drawn = {} if config.mixture is None else {"mixture": mixture_table(config, config.mixture)}
    return _result(config, rows, parameters, done) | drawn


def check_shape(config: TrainLmConfig) -> None:
    """Raise TrainError for an invalid shape of the model, too few steps, or exports that are no steps apart."""
    model = config.model
    if model.num_heads % model.num_kv_heads:
        raise TrainError(
            f"num_heads is {model.num_heads} and num_kv_heads {model.num_kv_heads}, "
            "expected num_kv_heads to divide num_heads. Change one of them."
        )
    if model.hidden_dim % model.num_heads or model.hidden_dim // model.num_heads < MIN_HEAD_DIM:
        raise TrainError(
            f"hidden_dim={model.hidden_dim} with num_heads={model.num_heads} gives a head dimension of "
            f"{model.hidden_dim / model.num_heads:g}, expected a whole number of at least {MIN_HEAD_DIM} so that vLLM "
            "can serve the model. Use fewer heads or a larger hidden_dim."
        )
    if config.num_train_steps < 2:
        raise TrainError(
            f"num_train_steps is {config.num_train_steps}, expected at least 2, or Levanter exports no model."
        )
    if config.steps_per_hf_export is not None and config.steps_per_hf_export < 1:
        raise TrainError(
            f"steps_per_hf_export is {config.steps_per_hf_export}, expected a number of steps of at least 1, or None."
        )


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
        "loss_curve": _curve(train_losses),
        "plots": [PLOT],
        "resumed_from_step": done,
    }


def _curve(losses: list[float]) -> list[float]:
    """The means of CURVE_POINTS equal parts, or all losses if they are fewer."""
    parts = min(CURVE_POINTS, len(losses))
    edges = [round(i * len(losses) / parts) for i in range(parts + 1)] if parts else []
    return [round(statistics.fmean(losses[a:b]), 4) for a, b in itertools.pairwise(edges)]
