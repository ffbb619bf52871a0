"""Create the steps around a scaling law that read trainings: the table of its runs, and forecasts against results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.defaults.sweep import GridPoint
from marin_assets.stages.report.scaling_runs.check_forecasts import CheckForecastsConfig, check_forecasts
from marin_assets.stages.report.scaling_runs.run_row import ModelParts
from marin_assets.stages.report.scaling_runs.tabulate_runs import TabulateRunsConfig, tabulate_runs
from marin_assets.stages.train.config import TrainDpoConfig, TrainLmConfig
from marin_assets.stages.train.memory import known_model
from marin_assets.stages.train.sizes import size_of
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned, without_versions

BUDGET = "flops"
"""Name of the budget among the varied values of a sweep."""


@checks_arguments()
def default_scaling_runs(
    name: str,
    trainings: Mapping[str, Step | GridPoint],
    *,
    loss: str = "loss_end",
    params: str = "with_head",
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "runs/<name>": the table of trainings that a scaling law is fitted to.

    `trainings` are those of `isoflop`, or steps of default_train by label. `loss` is a number of their results, or the
    last value of a metric that they log. `params` is the way to count parameters: "with_head" (layers and output
    matrix, with which 6ND is near the FLOPs), "without_embeddings" or "all".
    """
    steps = _steps(name, trainings)
    budgets = {
        label: float(run.varied[BUDGET])
        for label, run in trainings.items()
        if isinstance(run, GridPoint) and isinstance(run.varied.get(BUDGET), int | float)
    }
    return Step(
        name=f"runs/{name}",
        fn=tabulate_runs,
        config=TabulateRunsConfig(
            runs={label: output_path_of(step) for label, step in steps.items()},
            models=versioned({label: parts_of(step) for label, step in steps.items()}),
            budgets=versioned(budgets),
            loss=versioned(loss),
            params=versioned(params),
        ),
        extras=("evaluate",),  # jinja2
        expectations=expectations,
    )


@checks_arguments()
def default_forecast_check(
    name: str,
    fit: Step | InputName,
    trainings: Mapping[str, Step | GridPoint],
    *,
    loss: str = "loss_end",
    params: str = "with_head",
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "forecasts/<name>": the forecasts of a fit beside the trainings that came true.

    `fit` is a default_scaling_law with `forecasts`, whose labels are those of the trainings. `loss` and `params` are
    those of the table of its runs.
    """
    steps = _steps(name, trainings)
    return Step(
        name=f"forecasts/{name}",
        fn=check_forecasts,
        config=CheckForecastsConfig(
            fit_path=output_path_of(fit),
            runs={label: output_path_of(step) for label, step in steps.items()},
            models=versioned({label: parts_of(step) for label, step in steps.items()}),
            loss=versioned(loss),
            params=versioned(params),
        ),
        extras=("evaluate",),  # jinja2
        expectations=expectations,
    )


def model_parts(model: Any) -> ModelParts:
    """The parts of a LlamaSpec or ModelSpec without versioned()."""
    if getattr(model, "vocab_size", None) is not None:
        model = dataclasses.replace(model, vocab_size=None)
    layers = size_of(model, vocab_size=0)
    return ModelParts(
        layers=layers.parameters,
        active_layers=layers.active_parameters,
        embeddings=1 if model.tie_word_embeddings else 2,
    )


def parts_of(step: Step) -> ModelParts:
    """The parts of the model of a training. Raises ConfigError for a step that is none, or that begins with a model."""
    config = step.config
    if not isinstance(config, TrainLmConfig) or isinstance(config, TrainDpoConfig):
        raise ConfigError(
            f"The run {step.name!r} of a scaling law is no training of default_train, whose record has its tokens and "
            "FLOPs. Pass such steps, or write a table of runs and pass its path."
        )
    if config.start is not None:
        raise ConfigError(
            f"The run {step.name!r} of a scaling law begins with trained weights, whose tokens it does not count. Pass "
            "trainings from random weights."
        )
    model = known_model(without_versions(config.model))
    if model is None:
        raise ConfigError(
            f"The run {step.name!r} of a scaling law has the shape of a Hugging Face folder, which is not known yet. "
            "Pass a ModelSpec with that shape."
        )
    return model_parts(model)


def _steps(name: str, trainings: Mapping[str, Step | GridPoint]) -> dict[str, Step]:
    if not trainings:
        raise ConfigError(f"{name!r} has no trainings, expected some by label, such as those of isoflop.")
    return {label: run.step if isinstance(run, GridPoint) else run for label, run in trainings.items()}
