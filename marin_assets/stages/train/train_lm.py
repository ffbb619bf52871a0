"""Train a language model with Levanter, from random weights or from another model's, on documents or on chats.

In:  token caches (outputs of tokenize or tokenize_chats) and their tokenizer; a checkpoint or a Hugging Face folder
     (`start.py`).
Out, below the output path:
     hf/             the trained model as a Hugging Face folder with the tokenizer, for evaluation and serving
     checkpoints/    step-N: model and optimizer after step N; the last and every `steps_per_checkpoint`th are kept
     exports/        with `steps_per_hf_export`: the model in training as such folders (`exports.py`)
     peft/           with `lora`: the trained factors alone, as PEFT reads them
     start.json      the checkpoint that the run began with (`inputs/starting_point.py`)
     metrics.jsonl   one row a step (`metrics.py`)
     plots/loss.png  train and validation loss

The same call after a crash resumes from the last checkpoint, and gives the same weights bit for bit on the same
hardware; for that a GPU needs XLA's deterministic operations (docs/how-to/train-on-a-gpu.md). Outputs on a disk and in
a bucket (gs://, s3://) are equal, except for random file names of TensorStore.
It runs on the devices that jax finds: TPU, GPU or CPU; on all hosts of a slice as one job. It uses no hub, and reads
only the caches and the tokenizer folder. Levanter needs local folders for the tokenizer and its log, so these are in a
temporary folder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.formats import ChatSpec, chat_format, check_formats
from marin_assets.stages.train.inputs.finetune_checks import check_adaptation
from marin_assets.stages.train.inputs.hf_folder import hf_shape
from marin_assets.stages.train.inputs.mixture_inputs import at_paths, caches_in, checked_mixture, mixture_table
from marin_assets.stages.train.inputs.token_inputs import check_inputs, expand_snapshots
from marin_assets.stages.train.metrics.metrics import UNTRAINED_STEP
from marin_assets.stages.train.resumable import FinishedRun, result_of, run_resumably
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.model import (
    HuggingFaceModel,
    Shape,
    check_heads,
    sequence_length,
    shape_of,
)
from marin_assets.stages.train.specs.optimizer import is_averaged, sequences_in, validation_loss_of
from marin_assets.stages.train.specs.settings import MIN_HEAD_DIM
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.vocabulary import require_rows
from marin_resources.host.imports import collection_paused

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


def train_lm(config: TrainLmConfig) -> dict[str, Any]:
    """Train, or resume training from the last checkpoint, and export.

    Returns steps, parameters, head_dim, tokens_seen, tokens_per_second (median over the steps), loss_start and loss_end
    (validation loss of the first and the exported model, nats a token, on the same batches), loss_ratio (end /
    start), with an average of the weights loss_end_unaveraged, train_loss_end (mean of the last 10 steps), loss_curve
    (means of the training loss over 40 equal parts of the steps), validation_curve and the same of CURVES, model_path,
    plots, links (of the trackers), flops (of the whole training, by Levanter's count of the model), mfu (median share
    of the devices' peak, where that is known), devices (kind, count, peak_flops), the numbers of `health_of`,
    resumed_from_step (the own checkpoint's step, or None), with a start started_from (path, step, optimizer_state); on
    other hosts than the first, nothing.
    Raises TrainError for an invalid config, a start that does not fit, a loss that is not finite, or if the step
    requests a TPU or GPU and jax finds none; InputError for caches that do not match.
    """
    config.check_fields()
    shape = shape_in(config)
    check_shape(config, shape)
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
    run = run_resumably(
        config,
        run_levanter,
        family=shape.family,
        chat_template=chats.template if chats else None,
        validation_loss=validation_loss_of(config.loop),
    )
    return {} if run is None else _result(config, shape, run)


def shape_in(config: TrainLmConfig) -> Shape:
    """The shape of the model. Raises TrainError for a folder without one."""
    return hf_shape(config.model) if isinstance(config.model, HuggingFaceModel) else shape_of(config.model)


def check_shape(config: TrainLmConfig, shape: Shape) -> None:
    """Raise TrainError for a shape that cannot be trained, or is shorter than the sequences. That of a folder is known
    only now."""
    check_heads(shape, smallest_head=MIN_HEAD_DIM if isinstance(config.model, LlamaSpec) else 1)
    if sequence_length(config, shape) > shape.max_seq_len:
        raise TrainError(
            f"train_seq_len is {sequence_length(config, shape)}, and the model takes at most {shape.max_seq_len} "
            "tokens. Lower it, or raise the model's max_seq_len."
        )


def _result(config: TrainLmConfig, shape: Shape, run: FinishedRun) -> dict[str, Any]:
    last = run.first_step + config.num_train_steps
    rows = {row["step"]: row for row in run.rows if "eval/loss" in row}
    first, trained = rows[UNTRAINED_STEP], rows.get(last - 1, {})  # empty: it was not finite, with stop_on_nan=False
    start = first.get(run.validation_loss, first["eval/loss"])  # an earlier release evaluated the weights alone
    end = trained.get(run.validation_loss)
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
        **({"loss_end_unaveraged": trained.get("eval/loss")} if is_averaged(config.loop) else {}),
        **result_of(run),
        **({} if config.mixture is None else {"mixture": mixture_table(config, config.mixture, length)}),
    }
