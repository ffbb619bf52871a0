"""Create the step that trains a model by reinforcement learning."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.defaults.environment import extras_on
from marin_assets.defaults.training import Tags
from marin_assets.stages.train.metrics.health import checks_of
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.measures.health import REWARD_CHECKS
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import env_of
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.field_checks import tags_of
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, VersionedValue, ensure_versioned, output_path_of
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
    if not isinstance(model, Step | InputName):
        raise ConfigError(
            f"default_rl({name!r}) begins with {model!r}, expected a step that trains, or InputName.hardcoded(path) of "
            "a Hugging Face folder."
        )
    if not isinstance(environments, Mapping):
        raise ConfigError(
            f"default_rl({name!r}) has environments={environments!r}, expected them by name: {{'sums': DigitSums()}}."
        )
    given = TrainRlConfig() if train_config is None else train_config
    if not isinstance(given, TrainRlConfig):
        raise ConfigError(
            f"default_rl({name!r}) has a train_config of type {type(given).__name__}, expected a TrainRlConfig."
        )
    path = output_path_of(model, "hf") if isinstance(model, Step) else model
    config = dataclasses.replace(
        with_versions(given),
        start=FromHuggingFace(path=path),
        tokenizer_path=path,
        lessons={label: _lesson(environment) for label, environment in environments.items()},
    )
    return Step(
        name=f"checkpoints/{name}",
        fn=train_rl,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train"),
        env=env_of(config.trackers),
        resumable=True,
        tags=tags_of(tags or (), f"checkpoints/{name}"),
        override_output_path=override_output_path,
        expectations=checks_of(expectations, REWARD_CHECKS),
    )


def with_versions(spec: Any) -> Any:
    """A config in which each field that is versioned by default is so with the value that was given, too."""
    changed = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if isinstance(default, VersionedValue):
            changed[field.name] = ensure_versioned(value)
        elif dataclasses.is_dataclass(default) and dataclasses.is_dataclass(value):
            changed[field.name] = with_versions(value)
    return dataclasses.replace(spec, **changed)


def _lesson(environment: Any) -> Lesson:
    if not isinstance(environment, Lesson):
        return lesson_of(environment)
    versioned_class = ensure_versioned(environment.environment)
    lesson: Lesson = dataclasses.replace(with_versions(environment), environment=versioned_class)
    return lesson
