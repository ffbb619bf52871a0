"""Create the steps that train: from random weights, on from a model, on chats, on preferences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from marin_assets.defaults.environment import extras_on
from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.metrics.health import checks_of
from marin_assets.stages.train.simple import SimpleTrainConfig, to_train_lm_config
from marin_assets.stages.train.sizes import training_flops
from marin_assets.stages.train.specs.mixture import Mixture, versioned_mixture
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import env_of
from marin_assets.stages.train.train_dpo import train_dpo
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.field_checks import tags_of
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    InputName,
    VersionedValue,
    ensure_versioned,
    output_path_of,
    unwrap_versioned_value,
)
from marin_resources.hardware.resources import Resources, cpu

Tokenized = Step | InputName | Mapping[str, Step | InputName] | Mixture
Tags = Mapping[str, str] | Sequence[str]


@checks_arguments("tokenized", "model_config", "train_config")
@takes_marins_arguments
def default_train(
    name: str,
    tokenized: Tokenized,
    model_config: LlamaSpec | ModelSpec | HuggingFaceModel,
    train_config: TrainLmConfig | SimpleTrainConfig,
    *,
    resources: Resources | None = None,
    tags: Tags | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
    vocab_size: int | None = None,
) -> Step:
    """Return the step "checkpoints/<name>", which trains a model on one tokenized set, on several by name, or on a
    Mixture (`marin_assets.mixtures`).

    A snapshot of a tokenized set is one too: its partitions are trained on. It needs the snapshot's `partitions`.

    `train_config` has the number of steps, batch size, optimizer, weights of sets by name and the tokenizer's path. Its
    components, mixture and model are replaced by `tokenized` and `model_config`. A SimpleTrainConfig has Marin's names,
    and the resources. `tags` are a dict of texts, or a list of them. The checks are those of every training
    (`health.py`) and `expectations`, which come before them. `vocab_size` is the number of tokens of the tokenizer, by
    which a plan estimates time and price; None: that of a tokenizer of default_tokenizer, without which it has none.
    Raises TrainError for a setting that does not work and for a model that cannot fit the resources, InputError for a
    mixture that this training could not draw.
    """
    if vocab_size is not None and vocab_size < 1:
        raise ConfigError(
            f"The training {name!r} has vocab_size={vocab_size!r}, expected the number of tokens of its tokenizer, or "
            "None."
        )
    config = _train_lm_config(name, train_config, tokenized)
    if isinstance(model_config, VersionedValue):  # Marin's scripts have it so; the fields of a spec are versioned
        model_config = model_config.value
    config = dataclasses.replace(config, model=model_config, **_data(name, tokenized))
    step = _step(
        name,
        train_lm,
        config,
        resources or _resources_in(train_config),
        tags=tags,
        override_output_path=override_output_path,
        expectations=expectations,
        partitions=partitions,
    )
    flops = training_flops(config, vocab_size or _vocab_size_of(config.tokenizer_path))  # of a config that was checked
    return dataclasses.replace(step, expected_flops=flops)


@checks_arguments("of", "tokenized", "train_config")
@takes_marins_arguments
def default_anneal(
    name: str,
    of: Step,
    tokenized: Tokenized,
    train_config: SimpleTrainConfig,
    *,
    at_step: int | None = None,
    resources: Resources | None = None,
    tags: Tags | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>": a cooldown of the training `of`, on another mixture.

    It resumes from the checkpoint of step `at_step`, the last one if None, with the optimizer's state and the place in
    the data. `train_config.num_train_steps` are the steps of the cooldown. Its learning rate falls linearly from
    `learning_rate` to 0, unless the config has another schedule. Its optimizer is of the same kind as that of `of`.
    """
    if not isinstance(of, Step) or not isinstance(of.config, TrainLmConfig):
        raise ConfigError(
            f"default_anneal({name!r}) continues from {of!r}, expected a step that default_train returns."
        )
    if not isinstance(train_config, SimpleTrainConfig):
        raise ConfigError(
            f"default_anneal({name!r}) has a train_config of type {type(train_config).__name__}, expected a "
            "SimpleTrainConfig."
        )
    given = train_config
    if given.initialize_from_checkpoint_path is not None or given.initialize_from_hf is not None:
        raise ConfigError(
            f"default_anneal({name!r}) continues from a checkpoint of {of.name!r}, and its train_config names another "
            "start. Leave initialize_from_checkpoint_path and initialize_from_hf None."
        )
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


@checks_arguments("chats", "start", "model_config", "train_config")
@takes_marins_arguments
def default_sft(
    name: str,
    chats: Tokenized,
    start: Step | InputName,
    model_config: LlamaSpec | ModelSpec | HuggingFaceModel,
    train_config: TrainLmConfig | SimpleTrainConfig,
    *,
    resources: Resources | None = None,
    tags: Tags | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains the model of `start` on chats (supervised fine-tuning).

    `chats` is a step of default_tokenize_chats, or several by name or as a Mixture, with documents among them if they
    are to be learnt again. `start` is a step that trains, or the path of a Hugging Face folder; `model_config` is its
    shape. The rest is as in `default_train`; a TrainLmConfig may have lora=LoraSpec(), and chat=ChatSpec(…).
    """
    sets = chats if isinstance(chats, Mapping | Mixture) else {"chats": chats}
    config = _without_start(name, _train_lm_config(name, train_config, sets))
    config = dataclasses.replace(config, start=_start_from(name, start), chat=config.chat or ChatSpec())
    return default_train(
        name,
        sets,
        model_config,
        config,
        resources=resources or _resources_in(train_config),
        tags=tags,
        override_output_path=override_output_path,
        expectations=expectations,
    )


@checks_arguments("start", "reference", "model_config", "train_config")
@takes_marins_arguments
def default_dpo(
    name: str,
    preferences: Step | InputName,
    start: Step | InputName,
    model_config: LlamaSpec | ModelSpec | HuggingFaceModel,
    train_config: TrainDpoConfig | SimpleTrainConfig,
    *,
    reference: Step | InputName | None = None,
    resources: Resources | None = None,
    tags: Tags | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains the model of `start` on preferences (DPO).

    `preferences` is a step of default_tokenize_preferences. The reference is `start`, if it is None. The rest is as in
    `default_sft`; with a SimpleTrainConfig, beta is that of a TrainDpoConfig.
    """
    if isinstance(train_config, SimpleTrainConfig):
        common = _without_start(name, _train_lm_config(name, train_config, {"preferences": preferences}))
        given = TrainDpoConfig(**{field.name: getattr(common, field.name) for field in dataclasses.fields(common)})
    elif isinstance(train_config, TrainDpoConfig):
        given = train_config
    else:
        raise ConfigError(
            f"default_dpo({name!r}) has a train_config of type {type(train_config).__name__}, expected a "
            "TrainDpoConfig or a SimpleTrainConfig."
        )
    config = dataclasses.replace(
        given,
        components={"preferences": output_path_of(preferences)},
        model=model_config,
        start=_start_from(name, start),
        reference=_start_from(name, reference) if reference is not None else None,
    )
    return _step(
        name,
        train_dpo,
        config,
        resources or _resources_in(train_config),
        tags=tags,
        override_output_path=override_output_path,
        expectations=expectations,
    )


def _step(
    name: str,
    fn: Callable[[Any], Any],
    config: TrainLmConfig,
    resources: Resources | None,
    *,
    tags: Tags | None,
    override_output_path: str | None,
    expectations: Sequence[Expectation],
    partitions: Partitions | None = None,
) -> Step:
    return Step(
        name=f"checkpoints/{name}",
        fn=fn,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train"),
        env=env_of(config.trackers),
        resumable=True,
        tags=tags_of(tags or (), f"checkpoints/{name}"),
        override_output_path=override_output_path,
        expectations=checks_of(expectations),
        partitions=partitions,
    )


def _train_lm_config(name: str, given: Any, tokenized: Tokenized) -> TrainLmConfig:
    """The config of `train_lm`, in which all that decides the result is versioned."""
    if isinstance(given, SimpleTrainConfig):
        tokenizer = given.tokenizer_path or _tokenizer_of(name, _sets(name, tokenized))
        return to_train_lm_config(given, components={}, model=LlamaSpec(), tokenizer_path=tokenizer)
    if not isinstance(given, TrainLmConfig):
        raise ConfigError(
            f"The training {name!r} has a train_config of type {type(given).__name__}, expected a SimpleTrainConfig or "
            "a TrainLmConfig."
        )
    return given if given.levanter is None else dataclasses.replace(given, levanter=ensure_versioned(given.levanter))


def _resources_in(config: Any) -> Resources | None:
    return config.resources if isinstance(config, SimpleTrainConfig) else None


def _without_start(name: str, config: TrainLmConfig) -> TrainLmConfig:
    if config.start is not None:
        raise ConfigError(
            f"The training {name!r} begins with the model of its argument start, and its train_config has one too. "
            "Leave it out of the train_config."
        )
    return config


def _data(name: str, tokenized: Tokenized) -> dict[str, Any]:
    if isinstance(tokenized, Mixture):
        return {"components": {}, "mixture": versioned_mixture(tokenized)}
    components = {label: output_path_of(step) for label, step in _sets(name, tokenized).items()}
    return {"components": components, "mixture": None}


def _sets(name: str, tokenized: Tokenized) -> Mapping[str, Any]:
    """The tokenized sets by name; of a mixture, whose members may be several, their paths."""
    if isinstance(tokenized, Mixture):
        parts = (member if isinstance(member, Mapping) else {"": member} for member in tokenized.components.values())
        return {f"{number}/{key}": path for number, part in enumerate(parts) for key, path in part.items()}
    sets = tokenized if isinstance(tokenized, Mapping) else {"train": tokenized}
    for label, source in sets.items():
        if not isinstance(source, Step | InputName):
            raise ConfigError(
                f"The training {name!r} reads {source!r} as {label!r}, expected a tokenized step, several by name, or "
                "a Mixture. For a path under the prefix, pass InputName.hardcoded(path)."
            )
    return sets


def _start_from(name: str, step: Step | InputName | str) -> FromHuggingFace:
    """The model that a step exports, or the folder that is given."""
    if not isinstance(step, Step | InputName | str):
        raise ConfigError(
            f"The training {name!r} begins with {step!r}, expected a step that trains, or a Hugging Face folder."
        )
    return FromHuggingFace(path=output_path_of(step, "hf") if isinstance(step, Step) else step)


def _tokenizer_of(name: str, sets: Mapping[str, Step | InputName]) -> str:
    """The tokenizer that the sets were tokenized with."""
    for source in sets.values():
        step = source.step if isinstance(source, InputName) else source
        path = getattr(getattr(step, "config", None), "tokenizer_path", None)
        if path is not None:
            return cast(str, path)
    raise ConfigError(
        f"The training {name!r} reads no set of default_tokenize, so its tokenizer is not known. Set tokenizer_path."
    )


def _vocab_size_of(tokenizer: Any) -> int | None:
    """The tokens of a tokenizer that a step trains, or of its folder in another; None for one made elsewhere."""
    config = getattr(getattr(tokenizer, "step", None), "config", None)
    size = unwrap_versioned_value(getattr(config, "vocab_size", None))
    return size if isinstance(size, int) else None
