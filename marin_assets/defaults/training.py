"""Create the steps that train: from random weights, on from a model, on chats, on preferences."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from marin_assets.defaults.environment import extras_on
from marin_assets.stages.train.dpo_config import TrainDpoConfig
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.metrics.health import checks_of
from marin_assets.stages.train.mixture_inputs import check_mixture_in
from marin_assets.stages.train.simple import SimpleTrainConfig, to_train_lm_config
from marin_assets.stages.train.sizes import require_fit
from marin_assets.stages.train.specs.mixture import Mixture, plain_mixture, versioned_mixture
from marin_assets.stages.train.specs.mixture_checks import check_mixture
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec, length_before_a_run
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec, check_loop, check_optimizer
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.specs.trackers import env_of
from marin_assets.stages.train.train_dpo import train_dpo
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    InputName,
    ensure_versioned,
    output_path_of,
    unwrap_versioned_value,
)
from marin_resources.hardware import Resources, cpu


def default_train(
    name: str,
    tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture,
    model_config: LlamaSpec | ModelSpec | HuggingFaceModel,
    train_config: TrainLmConfig | SimpleTrainConfig,
    *,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "checkpoints/<name>", which trains a model on one tokenized set, on several by name, or on a
    Mixture (`marin_assets.mixtures`).

    A snapshot of a tokenized set is one too: its partitions are trained on. It needs the snapshot's `partitions`.

    `train_config` has the number of steps, batch size, optimizer, weights of sets by name and the tokenizer's path. Its
    components, mixture and model are replaced by `tokenized` and `model_config`. A SimpleTrainConfig has Marin's names,
    and the resources. The checks are those of every training (`health.py`) and `expectations`, which come before them.
    Raises TrainError for an optimizer or a schedule that does not work and for a model that cannot fit the resources,
    InputError for a mixture that this training could not draw.
    """
    data = _data(tokenized)
    if isinstance(train_config, SimpleTrainConfig):
        tokenizer = train_config.tokenizer_path or _tokenizer_of(name, _sets(tokenized))
        resources = resources or train_config.resources
        config = to_train_lm_config(train_config, components={}, model=model_config, tokenizer_path=tokenizer)
    else:
        levanter = None if train_config.levanter is None else ensure_versioned(train_config.levanter)
        config = dataclasses.replace(train_config, model=model_config, levanter=levanter)
    config = dataclasses.replace(config, **data)
    _check_settings(config)
    if isinstance(tokenized, Mixture):
        _check_mixture(config, tokenized)
    require_fit(config, resources, f"checkpoints/{name}")
    return Step(
        name=f"checkpoints/{name}",
        fn=train_lm,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train"),
        env=env_of(config.trackers),
        resumable=True,
        tags=tags or {},
        override_output_path=override_output_path,
        expectations=checks_of(expectations),
        partitions=partitions,
    )


def default_anneal(
    name: str,
    of: Step,
    tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture,
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


def default_sft(
    name: str,
    chats: Step | InputName | Mapping[str, Step | InputName] | Mixture,
    start: Step | InputName,
    model_config: LlamaSpec | ModelSpec,
    train_config: TrainLmConfig,
    *,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains the model of `start` on chats (supervised fine-tuning).

    `chats` is a step of default_tokenize_chats, or several by name or as a Mixture, with documents among them if they
    are to be learnt again. `start` is a step that trains, or the path of a Hugging Face folder; `model_config` is its
    shape. The rest is as in `default_train`; `train_config` may have lora=LoraSpec().
    """
    sets = chats if isinstance(chats, Mapping | Mixture) else {"chats": chats}
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
    model_config: LlamaSpec | ModelSpec,
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
        extras=extras_on(resources, "train"),
        env=env_of(train_config.trackers),
        resumable=True,
        tags=tags or {},
        override_output_path=override_output_path,
        expectations=checks_of(expectations),
    )


def _data(tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture) -> dict[str, Any]:
    if isinstance(tokenized, Mixture):
        return {"components": {}, "mixture": versioned_mixture(tokenized)}
    components = {label: output_path_of(step) for label, step in _sets(tokenized).items()}
    return {"components": components, "mixture": None}


def _sets(tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture) -> Mapping[str, Any]:
    """The tokenized sets by name; of a mixture, whose members may be several, their paths."""
    if isinstance(tokenized, Mixture):
        parts = (member if isinstance(member, Mapping) else {"": member} for member in tokenized.components.values())
        return {f"{number}/{key}": path for number, part in enumerate(parts) for key, path in part.items()}
    return tokenized if isinstance(tokenized, Mapping) else {"train": tokenized}


def _check_settings(config: TrainLmConfig) -> None:
    """What a run would refuse at its start is refused here, before the data are made for it."""
    optimizer, loop = unwrap_versioned_value(config.optimizer), unwrap_versioned_value(config.loop)
    if isinstance(optimizer, NamedOptimizerSpec):
        check_optimizer(optimizer)
    if loop is not None:
        check_loop(loop)


def _check_mixture(config: TrainLmConfig, mixture: Mixture) -> None:
    plain = plain_mixture(mixture)
    steps, batch_size, loop = map(
        unwrap_versioned_value, (config.num_train_steps, config.train_batch_size, config.loop)
    )
    length = length_before_a_run(config)
    goes_on = isinstance(config.start, FromCheckpoint) and unwrap_versioned_value(config.start.optimizer_state)
    check_mixture(plain, steps=steps, batch_size=batch_size, sequence_length=length)
    check_mixture_in(plain, loop=loop, optimizer_goes_on=goes_on)


def _start_from(step: Step | InputName) -> FromHuggingFace:
    """The model that a step exports, or the folder that is given."""
    return FromHuggingFace(path=output_path_of(step, "hf") if isinstance(step, Step) else step)


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
