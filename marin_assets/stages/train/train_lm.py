"""Train a language model with Levanter, from random weights or from another model's, on documents or on chats.

In:  token caches (outputs of tokenize or tokenize_chats) and their tokenizer; a checkpoint or a Hugging Face folder
     (`start.py`).
Out, below the output path:
     hf/             the trained model as a Hugging Face folder with the tokenizer, for evaluation and serving
     checkpoints/    step-N: model and optimizer after step N; the last and every `steps_per_checkpoint`th are kept
     exports/        with `steps_per_hf_export`: the model in training as such folders (`exports.py`)
     peft/           with `lora`: the trained factors alone, as PEFT reads them
     start.json      the checkpoint that the run began with (`starting_point.py`)
     metrics.jsonl   one row a step (`metrics.py`)
     plots/loss.png  train and validation loss

The same call after a crash resumes from the last checkpoint, and gives the same weights bit for bit on the same
hardware. Outputs on a disk and in a bucket (gs://, s3://) are equal, except for random file names of TensorStore.
It runs on the devices that jax finds: TPU, GPU or CPU; on all hosts of a slice as one job. It uses no hub, and reads
only the caches and the tokenizer folder. Levanter needs local folders for the tokenizer and its log, so these are in a
temporary folder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marin_assets.stages.train.adaptation import check_adaptation
from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.finished import FinishedRun, result_of
from marin_assets.stages.train.formats import ChatSpec, chat_format, check_formats
from marin_assets.stages.train.hf_folder import hf_shape
from marin_assets.stages.train.inputs import check_inputs, expand_snapshots
from marin_assets.stages.train.metrics.metrics import UNTRAINED_STEP
from marin_assets.stages.train.mixture_inputs import at_paths, caches_in, checked_mixture, mixture_table
from marin_assets.stages.train.resumable import run_resumably
from marin_assets.stages.train.specs.levanter_fields import check_paths
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.model import (
    HuggingFaceModel,
    ModelSpec,
    Shape,
    check_model,
    sequence_length,
    shape_of,
)
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec, check_loop, check_optimizer, sequences_in
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import check_trackers
from marin_assets.stages.train.vocabulary import require_rows
from marin_resources.imports import collection_paused

KINDS = ("levanter", "jax")

__all__ = [
    "ChatSpec",
    "FromHuggingFace",
    "LlamaSpec",
    "LoraSpec",
    "OptimizerSpec",
    "TrainError",
    "TrainLmConfig",
    "check_shape",
    "train_lm",
]

MIN_HEAD_DIM = 32
"""vLLM's attention on CPUs supports no smaller dimension (vLLM 0.32), so it could not serve a smaller model."""


def train_lm(config: TrainLmConfig) -> dict[str, Any]:
    """Train, or resume training from the last checkpoint, and export.

    Returns steps, parameters, head_dim, tokens_seen, tokens_per_second (median over the steps), loss_start and loss_end
    (validation loss of the first and the trained model, nats a token, on the same batches), loss_ratio (end /
    start), train_loss_end (mean of the last 10 steps), loss_curve (means of the training loss over 40 equal parts of
    the steps) and the same of CURVES, model_path, plots, links (of the trackers), flops (of the whole training, by
    Levanter's count of the model), mfu (median share of the devices' peak, where that is known), the numbers of
    `health_of`, resumed_from_step (the own checkpoint's step, or None), with a start started_from (path, step,
    optimizer_state); on other hosts than the first, nothing. Raises TrainError for an invalid shape or tracker, a start
    that does not fit, a loss that is not finite, or if the step requests a TPU or GPU and jax finds none; InputError
    for caches that do not match.
    """
    shape = shape_in(config)
    check_shape(config, shape)
    check_trackers(config.trackers)
    length = sequence_length(config, shape)
    if config.mixture is not None:
        config = replace(config, mixture=checked_mixture(config, config.mixture, length))
    else:
        config = replace(config, components=expand_snapshots(config.components))
        check_inputs(config.components, config.train_weights, config.tokenizer_path, length)
    check_formats(caches_in(config), config.chat, length)
    check_adaptation(config)
    require_rows(config.model, config.start, config.tokenizer_path)
    with collection_paused():
        from marin_assets.stages.train.levanter_run.run import run_levanter  # jax and Levanter take 3 s to import
        from marin_resources.storage.mirror import local_path_of  # 0.4 s to import

    # TensorStore reads plain paths only. Caches in another region are copied to this one, within the step's budget.
    config = replace(config, components={name: local_path_of(path) for name, path in config.components.items()})
    if config.mixture is not None:
        config = replace(config, mixture=at_paths(config.mixture, local_path_of))
    chats = chat_format(caches_in(config))
    run = run_resumably(config, run_levanter, family=shape.family, chat_template=chats.template if chats else None)
    return {} if run is None else _result(config, shape, run)


def shape_in(config: TrainLmConfig) -> Shape:
    """The shape of the model. Raises TrainError for a folder without one."""
    return hf_shape(config.model) if isinstance(config.model, HuggingFaceModel) else shape_of(config.model)


def check_shape(config: TrainLmConfig, shape: Shape) -> None:
    """Raise TrainError for an invalid shape of the model, too few steps, or exports that are no steps apart."""
    if isinstance(config.model, ModelSpec):
        check_model(config.model)
    if shape.num_heads % shape.num_kv_heads:
        raise TrainError(
            f"num_heads is {shape.num_heads} and num_kv_heads {shape.num_kv_heads}, "
            "expected num_kv_heads to divide num_heads. Change one of them."
        )
    smallest = MIN_HEAD_DIM if isinstance(config.model, LlamaSpec) else 1
    if shape.head_dim % 1 or shape.head_dim < smallest:
        raise TrainError(
            f"hidden_dim={shape.hidden_dim} with num_heads={shape.num_heads} gives a head dimension of "
            f"{shape.head_dim:g}, expected a whole number of at least {smallest} so that vLLM "
            "can serve the model. Use fewer heads or a larger hidden_dim."
        )
    if isinstance(config.optimizer, NamedOptimizerSpec):
        check_optimizer(config.optimizer)
    if config.loop is not None:
        check_loop(config.loop)
    check_paths(config.levanter or {})
    if sequence_length(config, shape) > shape.max_seq_len:
        raise TrainError(
            f"train_seq_len is {sequence_length(config, shape)}, and the model takes at most {shape.max_seq_len} "
            "tokens. Lower it, or raise the model's max_seq_len."
        )
    if config.num_train_steps < 2:
        raise TrainError(
            f"num_train_steps is {config.num_train_steps}, expected at least 2, or Levanter exports no model."
        )
    for name in ("keep_last_checkpoints", "keep_checkpoints_every"):
        if (kept := getattr(config, name)) is not None and kept < 1:
            raise TrainError(f"{name} is {kept}, expected a number of at least 1, or None.")
    if config.keep_checkpoints_every is not None and config.keep_last_checkpoints is None:
        raise TrainError(
            f"keep_checkpoints_every is {config.keep_checkpoints_every} and keep_last_checkpoints None, so all are "
            "kept. Pass keep_last_checkpoints=1 or more."
        )
    if config.steps_per_hf_export is not None and config.steps_per_hf_export < 1:
        raise TrainError(
            f"steps_per_hf_export is {config.steps_per_hf_export}, expected a number of steps of at least 1, or None."
        )


def _result(config: TrainLmConfig, shape: Shape, run: FinishedRun) -> dict[str, Any]:
    last = run.first_step + config.num_train_steps
    validation = {row["step"]: row["eval/loss"] for row in run.rows if "eval/loss" in row}
    start, end = validation[UNTRAINED_STEP], validation.get(last - 1)  # None: it was not finite, with stop_on_nan=False
    sequences = sequences_in(config.train_batch_size, config.loop, run.first_step, last)
    length = sequence_length(config, shape)
    return {
        "steps": config.num_train_steps,
        "parameters": run.parameters.total,
        **({"trained_parameters": run.parameters.trained} if config.lora else {}),
        "head_dim": int(shape.head_dim),
        "tokens_seen": sequences * length,
        "loss_start": start,
        "loss_end": end,
        "loss_ratio": None if end is None else end / start,
        **result_of(run),
        **({} if config.mixture is None else {"mixture": mixture_table(config, config.mixture, length)}),
    }
