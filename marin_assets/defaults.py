"""Create the common kinds of steps: default_download -> default_tokenize -> default_train -> default_eval,
and default_tokenize_chats -> default_sft, default_tokenize_preferences -> default_dpo.

The names are Marin's. Each function returns a Step and does nothing else. Steps are named by kind ("raw/",
"tokenized/", "checkpoints/", "evaluation/"). The requirements of a step (extras, resources, resumability) are set here,
so an experiment states only its recipe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from marin_assets.stages.download.files import DownloadFilesConfig, download_files
from marin_assets.stages.evaluate.lm_eval import LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.snapshot.take_snapshot import TakeSnapshotConfig, take_snapshot
from marin_assets.stages.tokenize.chat.templates import named_template
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.chat.tokenize_preferences import TokenizePreferencesConfig, tokenize_preferences
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.train.dpo_config import TrainDpoConfig
from marin_assets.stages.train.exports import FOLDER as EXPORTS
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.health import TRAINING_CHECKS
from marin_assets.stages.train.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.simple import SimpleTrainConfig, to_train_lm_config
from marin_assets.stages.train.sizes import require_fit
from marin_assets.stages.train.start import FromHuggingFace
from marin_assets.stages.train.trackers import env_of
from marin_assets.stages.train.train_dpo import train_dpo
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.reads import partitions_folder
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import (
    KEY,
    ConfigError,
    InputName,
    PartitionName,
    ensure_versioned,
    output_path_of,
    versioned,
)
from marin_resources.hardware import Resources, cpu


def default_download(
    name: str,
    source: str,
    *,
    expected_sha256: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "raw/<name>", which copies `source` (an fsspec URL, a glob or a folder), with checksums.

    `source` and `expected_sha256` (file name -> digest) enter the version. The step fails if a file has another digest.
    With `partitions`, `source` has the key in it: this_partition(form="s3://crawls/{partition}/wet").
    """
    config = DownloadFilesConfig(source=source if isinstance(source, PartitionName) else versioned(source))
    if expected_sha256:
        config = dataclasses.replace(config, expected_sha256=versioned(dict(expected_sha256)))
    return Step(
        name=f"raw/{name}",
        fn=download_files,
        config=config,
        resumable=True,
        override_output_path=override_output_path,
        expectations=expectations,
        partitions=partitions,
    )


def default_tokenize(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the documents in `dataset`, split by page.

    It has the partitions of `dataset`, if that is a step with partitions.
    """
    config = TokenizeConfig(documents_path=output_path_of(dataset), tokenizer_path=output_path_of(tokenizer))
    return _tokenized(name, tokenize, config, dataset, validation_fraction, expectations)


def default_snapshot(name: str, of: Step, partitions: Partitions) -> Step:
    """Return the step "snapshots/<name>": for each of its own keys, the list of the partitions of `of` that were
    complete when the key was made.

    What reads it has the same `partitions`, such as dynamic("snapshots") or monthly("2026-01-01").
    """
    config = TakeSnapshotConfig(partitions_path=partitions_folder(of))
    return Step(name=f"snapshots/{name}", fn=take_snapshot, config=config, partitions=partitions)


def default_train(
    name: str,
    tokenized: Step | InputName | Mapping[str, Step | InputName],
    model_config: LlamaSpec | ModelSpec | HuggingFaceModel,
    train_config: TrainLmConfig | SimpleTrainConfig,
    *,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "checkpoints/<name>", which trains a model on one tokenized set, or on a mixture by name.

    A snapshot of a tokenized set is one too: its partitions are trained on. It needs the snapshot's `partitions`.

    `train_config` has the number of steps, batch size, optimizer, weights of the mixture and the tokenizer's path. Its
    components and model are replaced by `tokenized` and `model_config`. A SimpleTrainConfig has Marin's names, and the
    resources. Its checks are TRAINING_CHECKS, which warn, and `expectations`. Raises TrainError for a model that cannot
    fit the resources.
    """
    sets = tokenized if isinstance(tokenized, Mapping) else {"train": tokenized}
    components: dict[str, str] = {label: output_path_of(step) for label, step in sets.items()}
    if isinstance(train_config, SimpleTrainConfig):
        tokenizer = train_config.tokenizer_path or _tokenizer_of(name, sets)
        resources = resources or train_config.resources
        config = to_train_lm_config(train_config, components=components, model=model_config, tokenizer_path=tokenizer)
    else:
        levanter = None if train_config.levanter is None else ensure_versioned(train_config.levanter)
        config = dataclasses.replace(train_config, components=components, model=model_config, levanter=levanter)
    require_fit(config, resources, f"checkpoints/{name}")
    return Step(
        name=f"checkpoints/{name}",
        fn=train_lm,
        config=config,
        resources=resources or cpu(),
        extras=_extras_on(resources, "train"),
        env=env_of(config.trackers),
        resumable=True,
        tags=tags or {},
        override_output_path=override_output_path,
        expectations=(*TRAINING_CHECKS, *expectations),
        partitions=partitions,
    )


def default_tokenize_chats(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    max_seq_len: int,
    adapter: str = "openai",
    template: str = "plain",
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the chats in `dataset`, for default_sft.

    `adapter` is the shape of its rows, `template` the name of a chat template, `max_seq_len` that of the model.
    """
    config = TokenizeChatsConfig(
        chats_path=output_path_of(dataset),
        tokenizer_path=output_path_of(tokenizer),
        adapter=versioned(adapter),
        chat_template=named_template(template),
        max_seq_len=versioned(max_seq_len),
    )
    return _tokenized(name, tokenize_chats, config, dataset, validation_fraction, expectations)


def default_tokenize_preferences(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    max_seq_len: int,
    adapter: str = "chats",
    template: str = "plain",
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the preferences in `dataset`, for default_dpo.

    The arguments are those of `default_tokenize_chats`; the template is that which the model was trained with.
    """
    config = TokenizePreferencesConfig(
        preferences_path=output_path_of(dataset),
        tokenizer_path=output_path_of(tokenizer),
        adapter=versioned(adapter),
        chat_template=named_template(template),
        max_seq_len=versioned(max_seq_len),
    )
    return _tokenized(name, tokenize_preferences, config, dataset, validation_fraction, expectations)


def default_sft(
    name: str,
    chats: Step | InputName | Mapping[str, Step | InputName],
    start: Step | InputName,
    model_config: LlamaSpec,
    train_config: TrainLmConfig,
    *,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains the model of `start` on chats (supervised fine-tuning).

    `chats` is a step of default_tokenize_chats, or several by name, with documents among them if they are to be learnt
    again. `start` is a step that trains, or the path of a Hugging Face folder; `model_config` is its shape. The rest is
    as in `default_train`; `train_config` may have lora=LoraSpec().
    """
    sets = chats if isinstance(chats, Mapping) else {"chats": chats}
    config = dataclasses.replace(train_config, start=_start_from(start), chat=train_config.chat or ChatSpec())
    return default_train(
        name,
        sets,
        model_config,
        config,
        resources=resources,
        tags=tags,
        override_output_path=override_output_path,
        expectations=expectations,
    )


def default_dpo(
    name: str,
    preferences: Step | InputName,
    start: Step | InputName,
    model_config: LlamaSpec,
    train_config: TrainDpoConfig,
    *,
    reference: Step | InputName | None = None,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains the model of `start` on preferences (DPO).

    `preferences` is a step of default_tokenize_preferences. The reference is `start`, if it is None. The rest is as in
    `default_sft`.
    """
    config = dataclasses.replace(
        train_config,
        components={"preferences": output_path_of(preferences)},
        model=model_config,
        start=_start_from(start),
        reference=_start_from(reference) if reference is not None else None,
    )
    return Step(
        name=f"checkpoints/{name}",
        fn=train_dpo,
        config=config,
        resources=resources or cpu(),
        extras=_extras_on(resources, "train"),
        env=env_of(train_config.trackers),
        resumable=True,
        tags=tags or {},
        override_output_path=override_output_path,
        expectations=(*TRAINING_CHECKS, *expectations),
    )


def default_anneal(
    name: str,
    of: Step,
    tokenized: Step | InputName | Mapping[str, Step | InputName],
    train_config: SimpleTrainConfig,
    *,
    at_step: int | None = None,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>": a cooldown of the training `of`, on another mixture.

    It goes on from the checkpoint of step `at_step`, the last one if None, with the optimizer's state and the place in
    the data. `train_config.num_train_steps` are the steps of the cooldown. Its learning rate falls linearly from
    `learning_rate` to 0, unless the config says otherwise. Its optimizer is of the same kind as that of `of`.
    """
    if not isinstance(of.config, TrainLmConfig):
        raise ConfigError(f"default_anneal({name!r}) goes on from {of!r}, expected a step that default_train returns.")
    given = train_config
    config = dataclasses.replace(
        given,
        initialize_from_checkpoint_path=output_path_of(of, "checkpoints"),
        initialize_from_step=at_step,
        reset_data_loader_on_init=False,
        warmup=0.0 if given.warmup is None else given.warmup,
        lr_schedule="linear" if given.lr_schedule is None else given.lr_schedule,
        min_lr_ratio=0.0 if given.min_lr_ratio is None else given.min_lr_ratio,
    )
    model = of.config.model
    return default_train(name, tokenized, model, config, resources=resources, tags=tags, expectations=expectations)


def default_eval(
    step: Step | InputName,
    evals: Sequence[str] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: str | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<its name>": lm-eval results of the model that `step` exports.

    `evals` are names of tasks in lm-eval or in the YAML files below `include_path`; the held-out tasks if None. Raises
    ValueError for a hardcoded path.
    """
    of = step.step if isinstance(step, InputName) else step
    if of is None:
        raise ValueError(f"default_eval({step!r}) got a hardcoded path, expected a step that trains. Pass the step.")
    model = output_path_of(step) if isinstance(step, InputName) and step.name else output_path_of(of, "hf")
    return Step(
        name=f"evaluation/{of.name.removeprefix('checkpoints/')}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(model, evals, held_out, include_path, max_eval_instances),
        resources=resources or cpu(),
        extras=_extras_on(resources, "train", "evaluate"),
        expectations=expectations,
    )


def default_checkpoint_evals(
    step: Step,
    partitions: Partitions,
    evals: Sequence[str] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: str | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
) -> Step:
    """Return the step "checkpoint_evaluation/<its name>": lm-eval results of each model that `step` exports while it
    trains, a partition for each.

    `partitions` is a dynamic set, such as dynamic("nano_checkpoints"), to which the sensor `new_checkpoints` adds
    "step-0000100". The config of `step` has `steps_per_hf_export`. The results do not wait for the training to end.
    Other arguments are those of `default_eval`.
    """
    model = output_path_of(step, f"{EXPORTS}/{KEY}").nonblocking()
    return Step(
        name=f"checkpoint_evaluation/{step.name.removeprefix('checkpoints/')}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(model, evals, held_out, include_path, max_eval_instances),
        resources=resources or cpu(),
        extras=_extras_on(resources, "train", "evaluate"),
        partitions=partitions,
    )


def _lm_eval(
    model: InputName,
    evals: Sequence[str] | None,
    held_out: Step | InputName | None,
    include_path: str | None,
    max_eval_instances: int | None,
) -> LmEvalConfig:
    config = LmEvalConfig(
        model_path=model,
        held_out_path=output_path_of(held_out) if held_out is not None else None,
        include_path=include_path,
        max_eval_instances=versioned(max_eval_instances),
    )
    return config if evals is None else dataclasses.replace(config, tasks=versioned(tuple(evals)))


def _tokenized(
    name: str,
    fn: Callable[[Any], Any],
    config: TokenizeConfig | TokenizeChatsConfig | TokenizePreferencesConfig,
    dataset: Step | InputName,
    validation_fraction: float | None,
    expectations: Sequence[Expectation],
) -> Step:
    if validation_fraction is not None:
        config = dataclasses.replace(config, validation_fraction=versioned(validation_fraction))
    return Step(
        name=f"tokenized/{name}",
        fn=fn,
        config=config,
        extras=("curate", "train"),
        resumable=True,
        expectations=expectations,
        partitions=_partitions_of(dataset),
    )


def _start_from(step: Step | InputName) -> FromHuggingFace:
    """The model that a step exports, or the folder that is given."""
    return FromHuggingFace(path=output_path_of(step, "hf") if isinstance(step, Step) else step)


def _partitions_of(step: Step | InputName) -> Partitions | None:
    of = step.step if isinstance(step, InputName) else step
    read_whole = isinstance(step, InputName) and step.key is not None
    return None if of is None or read_whole else of.partitions


def _tokenizer_of(name: str, sets: Mapping[str, Step | InputName]) -> str:
    """The tokenizer that the sets were tokenized with."""
    for found in sets.values():
        step = found.step if isinstance(found, InputName) else found
        path = getattr(getattr(step, "config", None), "tokenizer_path", None)
        if path is not None:
            return cast(str, path)
    raise ConfigError(
        f"The training {name!r} reads no set of default_tokenize, so its tokenizer is not known. Set tokenizer_path."
    )


def _extras_on(resources: Resources | None, *extras: str) -> tuple[str, ...]:
    """The extras, and JAX for the device: JAX without it would compute on the CPU, and let the device idle."""
    if resources is not None and resources.gpu is not None:
        return (*extras, "gpu")
    return (*extras, "tpu") if resources is not None and resources.tpu is not None else extras
