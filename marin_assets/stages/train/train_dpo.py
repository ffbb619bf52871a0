"""Train a model on preferences with Levanter: direct preference optimization (Rafailov et al. 2023).

In:  one cache of preferences (an output of tokenize_preferences), its tokenizer, and the model to begin with.
Out, below the output path, as in `train_lm`: hf/, checkpoints/, exports/, peft/ with `lora`, metrics.jsonl and
     plots/loss.png. metrics.jsonl has dpo_loss, dpo_accuracy (the share of pairs whose chosen answer has the greater
     reward), dpo_margin_policy, dpo_margin_ref, dpo_chosen_reward and dpo_rejected_reward, below "train/" and
     "eval/<component>/".

The reference is the model at the start, another model, or with `lora` the base below the factors. It is not trained,
and its likelihoods of the validation side are computed once in each attempt. Everything else is as in `train_lm`: the
same call after a crash resumes, and gives the same weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.formats import chat_format, check_preferences
from marin_assets.stages.train.inputs.finetune_checks import check_adaptation, check_start
from marin_assets.stages.train.inputs.token_inputs import check_tokenizer
from marin_assets.stages.train.metrics.metrics import UNTRAINED_STEP
from marin_assets.stages.train.resumable import FinishedRun, result_of, run_resumably
from marin_assets.stages.train.specs.model import Shape
from marin_assets.stages.train.train_lm import check_shape, shape_in
from marin_assets.stages.train.vocabulary import require_rows

KINDS = ("levanter", "jax")


def train_dpo(config: TrainDpoConfig) -> dict[str, Any]:
    """Train, or resume training from the last checkpoint, and export.

    Returns steps, parameters, trained_parameters, pairs_seen, tokens_per_second (of one side of the pairs), loss_start
    and loss_end (on the validation side; ln 2 if nothing is preferred), accuracy_start (0 if the model is its own
    reference: no answer is preferred), accuracy_end, margin_end (chosen less rejected reward), train_loss_end,
    loss_curve, model_path, plots, resumed_from_step; on other hosts than the first, nothing. Raises TrainError for an
    invalid config, InputError for a cache that does not match.
    """
    config.check_fields()
    shape = shape_in(config)
    check_shape(config, shape)
    _check_files(config, shape)
    from marin_assets.stages.train.levanter_run.dpo import run_levanter_dpo  # jax and Levanter take 3 s to import
    from marin_resources.storage.mirror import local_path_of  # 0.4 s to import

    [(name, path)] = config.components.items()
    config = replace(config, components={name: local_path_of(path)})
    chats = chat_format(config.components)
    run = run_resumably(
        config,
        run_levanter_dpo,
        family=shape.family,
        chat_template=chats.template if chats else None,
        validation_loss=f"eval/{name}/loss",
    )
    return {} if run is None else _result(config, name, run)


def _check_files(config: TrainDpoConfig, shape: Shape) -> None:
    [(name, path)] = config.components.items()
    check_preferences(name, path, shape.max_seq_len, config.train_batch_size)
    check_tokenizer(name, path, config.tokenizer_path)
    check_adaptation(config)
    require_rows(config.model, config.start, config.tokenizer_path)
    if config.reference is not None:
        check_start(config.reference, config)
        require_rows(None, config.reference, config.tokenizer_path)


def _result(config: TrainDpoConfig, name: str, run: FinishedRun) -> dict[str, Any]:
    validation = {row["step"]: row for row in run.rows if f"eval/{name}/loss" in row}
    start = validation[UNTRAINED_STEP]
    end = validation.get(config.num_train_steps - 1, {})  # empty: it was not finite, with stop_on_nan=False
    chosen, rejected = (end.get(f"eval/{name}/dpo_{side}_reward") for side in ("chosen", "rejected"))
    of = f"eval/{name}"
    return {
        "steps": config.num_train_steps,
        "parameters": run.parameters.total,
        "trained_parameters": run.parameters.trained,
        "pairs_seen": config.num_train_steps * config.train_batch_size,
        "loss_start": start[f"{of}/loss"],
        "loss_end": end.get(f"{of}/loss"),
        "accuracy_start": start[f"{of}/dpo_accuracy"],
        "accuracy_end": end.get(f"{of}/dpo_accuracy"),
        "margin_end": None if chosen is None or rejected is None else chosen - rejected,
        **result_of(run),
    }
