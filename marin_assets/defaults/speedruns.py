"""Create the steps of speedruns: the entry of a training, the page of many entries, recipes compared by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marin_assets.defaults.sweep import GridPoint
from marin_assets.stages.report.speedruns.board import SpeedrunBoardConfig, write_board
from marin_assets.stages.report.speedruns.compare_recipes import CompareRecipesConfig, compare_recipes
from marin_assets.stages.report.speedruns.speedrun import Author, WriteSpeedrunConfig, write_speedrun
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned

KIND = "speedruns"


@checks_arguments("training", "author")
def default_speedrun(
    name: str,
    training: Step | InputName | GridPoint,
    *,
    author: Author | str,
    description: str,
    metric: str = "eval/bpb",
    goal: str = "min",
    evaluation: Step | None = None,
    label: str | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "speedruns/<name>": the entry of a training, `speedrun_results.json` with Marin's keys.

    `training` is a step that trains, or InputName.hardcoded(path) of a training of Marin's. `metric` is ranked: one
    that the training has logged, or with `evaluation` a number of that step's result. `label` is the recipe, by which
    tables group seeds and sizes; None: the name without its last part, or all of it. Raises ConfigError for what is no
    training, ReportError for an author without a name.
    """
    training = training.step if isinstance(training, GridPoint) else training
    if not isinstance(training, Step | InputName):
        raise ConfigError(
            f"default_speedrun({name!r}) is of {training!r:.200}, expected a step that trains. Pass "
            "default_speedrun(name, default_train(…), author='…', description='…')."
        )
    if not isinstance(author, Author | str):
        raise ConfigError(f"default_speedrun({name!r}) has author={author!r}, expected a name, or Author(name='…').")
    return Step(
        name=f"{KIND}/{name}",
        fn=write_speedrun,
        config=WriteSpeedrunConfig(
            training_path=output_path_of(training) if isinstance(training, Step) else training,
            author=versioned(Author(name=author) if isinstance(author, str) else author),
            description=versioned(description),
            metric=versioned(metric),
            goal=versioned(goal),
            evaluation_path=None if evaluation is None else output_path_of(evaluation),
            label=versioned(label or name.rpartition("/")[0] or name),
        ),
        expectations=expectations,
    )


@checks_arguments()
def default_speedrun_board(
    name: str,
    entries: Sequence[Step] = (),
    *,
    folders: Mapping[str, Step | InputName | str] | None = None,
    metric: str = "eval/bpb",
    goal: str = "min",
    targets: Mapping[str, float] | None = None,
    baseline: str | None = None,
    floor: float | None = None,
    forecast_flops: float | None = None,
    title: str = "Speedruns",
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "comparisons/<name>": a page of speedruns, with their front, tracks by target, recipes by size.

    `entries` are steps of default_speedrun, `folders` have files of entries at any depth, by the name that goes before
    theirs, which may be empty. `targets` are values of the metric by the name of a track. With a `baseline` (a label)
    and a `floor` (the loss that no compute goes below) the page has the compute that others save, with
    `forecast_flops` the forecasts of recipes with five sizes or more.
    """
    return Step(
        name=f"comparisons/{name}",
        fn=write_board,
        config=SpeedrunBoardConfig(
            entries={step.name.removeprefix(f"{KIND}/"): output_path_of(step) for step in entries},
            folders={
                label: output_path_of(folder) if isinstance(folder, Step) else folder
                for label, folder in (folders or {}).items()
            },
            metric=versioned(metric),
            goal=versioned(goal),
            targets=versioned({track: float(target) for track, target in (targets or {}).items()}),
            baseline=versioned(baseline),
            floor=versioned(floor),
            forecast_flops=versioned(forecast_flops),
            title=versioned(title),
        ),
        extras=("evaluate",),
        expectations=expectations,
    )


@checks_arguments()
def default_recipe_comparison(
    name: str,
    recipes: Mapping[str, Sequence[Step | GridPoint]],
    *,
    metric: str = "loss_end",
    goal: str = "min",
    baseline: str | None = None,
    floor: float | None = None,
    forecast_flops: float | None = None,
    title: str = "Recipes by size",
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "comparisons/<name>": the loss of recipes by training FLOPs, a line a recipe, with errors.

    `recipes` are trainings by recipe, such as the optimizer, in any sizes and seeds: steps that train, or points of a
    grid. `metric` is a number of their results, or one that they log. The other arguments are those of
    default_speedrun_board.
    """
    trainings = {
        recipe: [run.step if isinstance(run, GridPoint) else run for run in runs] for recipe, runs in recipes.items()
    }
    return Step(
        name=f"comparisons/{name}",
        fn=compare_recipes,
        config=CompareRecipesConfig(
            recipes={recipe: [output_path_of(step) for step in steps] for recipe, steps in trainings.items()},
            metric=versioned(metric),
            goal=versioned(goal),
            baseline=versioned(baseline),
            floor=versioned(floor),
            forecast_flops=versioned(forecast_flops),
            title=versioned(title),
        ),
        extras=("evaluate",),
        expectations=expectations,
    )
