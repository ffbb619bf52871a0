"""Create the step that trains a model by reinforcement learning, and the one that evaluates it on rewards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.defaults.environment import extras_on
from marin_assets.defaults.training import Tags
from marin_assets.stages.train.metrics.health import checks_of
from marin_assets.stages.train.rl.config import VERSIONED_IF_SET, TrainRlConfig
from marin_assets.stages.train.rl.evaluation.evaluate_on_rewards import RlEvalConfig, evaluate_on_rewards
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.measures.health import REWARD_CHECKS
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import env_of
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.field_checks import tags_of
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    InputName,
    Placeholder,
    VersionedValue,
    ensure_versioned,
    output_path_of,
    versioned,
    without_versions,
)
from marin_resources.hardware.resources import Resources, cpu


@checks_arguments("model", "environments", "train_config")
def default_rl(
    name: str,
    model: Step | InputName,
    environments: Mapping[str, Any],
    train_config: TrainRlConfig | None = None,
    *,
    resources: Resources | None = None,
    tags: Tags | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "checkpoints/<name>", which trains `model` on the rewards of environments.

    `model` is a step that trains, or the path of a Hugging Face folder with a tokenizer. `environments` are objects of
    dataclasses by name, drawn equally often, or Lessons, which have a weight. Start, tokenizer and lessons of
    `train_config` are replaced; plain values of its versioned fields are versioned. Raises TrainError for a setting
    that does not work.
    """
    path = _model_path("default_rl", name, model)
    lessons = _lessons("default_rl", name, environments)
    given = TrainRlConfig() if train_config is None else train_config
    if not isinstance(given, TrainRlConfig):
        raise ConfigError(
            f"default_rl({name!r}) has a train_config of type {type(given).__name__}, expected a TrainRlConfig."
        )
    config = dataclasses.replace(
        _with_settings_versioned(with_versions(given)),
        start=FromHuggingFace(path=path),
        tokenizer_path=path,
        lessons=lessons,
    )
    return Step(
        name=f"checkpoints/{name}",
        fn=train_rl,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train", *_extras_of(lessons)),
        env=env_of(config.trackers),
        resumable=True,
        tags=tags_of(tags or (), f"checkpoints/{name}"),
        override_output_path=override_output_path,
        expectations=checks_of(expectations, REWARD_CHECKS),
    )


@checks_arguments("model", "environments", "eval_config")
def default_rl_eval(
    name: str,
    model: Step | InputName,
    environments: Mapping[str, Any],
    eval_config: RlEvalConfig | None = None,
    *,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<name>": rewards and pass@k of `model` on examples that no training draws.

    `model` and `environments` are those of `default_rl`; weights of lessons do not count. Model and lessons of
    `eval_config` are replaced; plain values of its versioned fields are versioned. `default_model_comparison` compares
    two such steps. Raises TrainError for a setting that does not work.
    """
    path = _model_path("default_rl_eval", name, model)
    lessons = {
        label: dataclasses.replace(lesson, weight=versioned(1.0), is_trained=versioned(True))
        for label, lesson in _lessons("default_rl_eval", name, environments).items()
    }
    given = RlEvalConfig() if eval_config is None else eval_config
    if not isinstance(given, RlEvalConfig):
        raise ConfigError(
            f"default_rl_eval({name!r}) has an eval_config of type {type(given).__name__}, expected an RlEvalConfig."
        )
    return Step(
        name=f"evaluation/{name}",
        fn=evaluate_on_rewards,
        config=dataclasses.replace(with_versions(given), model_path=path, lessons=lessons),
        resources=resources or cpu(),
        extras=extras_on(resources, "train", *_extras_of(lessons)),
        resumable=True,
        expectations=expectations,
    )


def with_versions(spec: Any) -> Any:
    """A config in which each field that is versioned by default is so with the value that was given, too."""
    changed = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if isinstance(default, VersionedValue):
            changed[field.name] = ensure_versioned(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, Placeholder):
            changed[field.name] = with_versions(value)
    return dataclasses.replace(spec, **changed)


def _with_settings_versioned(config: TrainRlConfig) -> TrainRlConfig:
    """A config whose settings that are versioned if they are set are so."""
    plain = {name: without_versions(getattr(config, name)) for name in VERSIONED_IF_SET}
    changed = {name: versioned(value) for name, value in plain.items() if value != VERSIONED_IF_SET[name]}
    return dataclasses.replace(config, **{**plain, **changed})


def _model_path(function: str, name: str, model: Any) -> InputName:
    if not isinstance(model, Step | InputName):
        raise ConfigError(
            f"{function}({name!r}) begins with {model!r}, expected a step that trains, or InputName.hardcoded(path) of "
            "a Hugging Face folder."
        )
    return output_path_of(model, "hf") if isinstance(model, Step) else model


def _lessons(function: str, name: str, environments: Any) -> dict[str, Lesson]:
    if not isinstance(environments, Mapping):
        raise ConfigError(
            f"{function}({name!r}) has environments={environments!r}, expected them by name: {{'sums': DigitSums()}}."
        )
    return {label: _lesson(environment) for label, environment in environments.items()}


def _extras_of(lessons: Mapping[str, Lesson]) -> Sequence[str]:
    """The extras that the environments need, each once."""
    return list(dict.fromkeys(extra for lesson in lessons.values() for extra in lesson.extras))


def _lesson(environment: Any) -> Lesson:
    if not isinstance(environment, Lesson):
        return lesson_of(environment)
    versioned_class = ensure_versioned(environment.environment)
    lesson: Lesson = dataclasses.replace(with_versions(environment), environment=versioned_class)
    return lesson
