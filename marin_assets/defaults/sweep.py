"""Create the steps of a sweep: one for each combination of values, and the one that compares them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.report.compare_runs import CompareRunsConfig, compare_runs
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    Placeholder,
    VersionedValue,
    ensure_versioned,
    output_path_of,
    unwrap_versioned_value,
    versioned,
)
from marin_resources.types.near_names import expected_one_of

Varied = Mapping[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True)
class GridPoint:
    """One combination of a grid."""

    step: Step
    varied: Mapping[str, Any]
    """The values of the combination, by the names in its label: {"learning_rate": 0.003, "width": "64"}."""


@checks_arguments("varied")
def grid(base: Step, varied: Varied) -> dict[str, GridPoint]:
    """Return a step for each combination of values, by a readable label: "learning_rate=0.003,seed=1".

    `varied` has values by the dotted path of a field of the base's config: {"optimizer.learning_rate": [0.001, 0.003]}.
    Fields that change together have a name of their own, and for each label their values:
    {"width": {"64": {"model.hidden_dim": 64, "model.intermediate_dim": 256}, …}}. A label that is a number is one in
    plots. The steps are named "<base>/<label>", and have the resources, tags and checks of the base, but not its asset
    key or its override of the path. The base itself is no part of the grid. What is varied enters the version, also
    where the base's field is not versioned.

    Raises ConfigError for no values, a value twice, a path that is no field, a field that is varied twice, and
    TrainError for a model that cannot fit the resources.
    """
    dimensions = {_short(path, varied): _choices(base, path, values) for path, values in varied.items()}
    if not dimensions:
        raise ConfigError(f"grid({base.name!r}) varies nothing, expected values by path. Pass {{'seed': [0, 1, 2]}}.")
    _check_once(base, dimensions)
    points: dict[str, GridPoint] = {}
    for combination in itertools.product(*(choices.items() for choices in dimensions.values())):
        given = {name: label for name, (label, _) in zip(dimensions, combination, strict=True)}
        config = base.config
        for _, changes in combination:
            for path, value in changes.items():
                config = _replaced(config, path.split("."), value, f"grid({base.name!r}): {path!r}")
        label = ",".join(f"{name}={text}" for name, text in given.items())
        name = f"{base.name}/{label}"
        step = dataclasses.replace(base, name=name, config=config, key=None, override_output_path=None)
        points[label] = GridPoint(step, {name: _as_number(text) for name, text in given.items()})
    return points


@checks_arguments()
def default_comparison(
    name: str,
    runs: Mapping[str, Step | GridPoint],
    *,
    metric: str = "loss_end",
    goal: str = "min",
    further: Sequence[str] = (),
    keep: Sequence[str] = ("hf",),
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "comparisons/<name>": the runs by a metric, their plot, and the best one's model in `hf`.

    `runs` are those of a grid, or steps by label. `metric` and `further` are numbers of their results, or metrics that
    they log, such as "eval/prose/loss". `keep` names what is copied from the best run. The output can be read as that
    of a training: `default_eval(step)`, `output_path_of(step, "hf")`.
    """
    steps = {label: run.step if isinstance(run, GridPoint) else run for label, run in runs.items()}
    given = {label: dict(run.varied) for label, run in runs.items() if isinstance(run, GridPoint)}
    return Step(
        name=f"comparisons/{name}",
        fn=compare_runs,
        config=CompareRunsConfig(
            runs={label: output_path_of(step) for label, step in steps.items()},
            metric=versioned(metric),
            goal=versioned(goal),
            further=versioned(tuple(further)),
            varied=versioned(given),
            keep=versioned(tuple(keep)),
        ),
        extras=("train",),  # matplotlib
        expectations=expectations,
    )


def _choices(base: Step, path: str, values: Any) -> dict[str, dict[str, Any]]:
    """Label -> path -> value of one dimension."""
    where = f"grid({base.name!r}): {path!r}"
    if isinstance(values, str) or not isinstance(values, Sequence | Mapping) or not values:
        raise ConfigError(f"{where} has the values {values!r}, expected a list of at least one. Pass [0.001, 0.003].")
    if isinstance(values, Mapping):
        if not all(isinstance(changes, Mapping) and changes for changes in values.values()):
            raise ConfigError(
                f"{where} has {values!r}, expected for each label the fields that it changes. Pass "
                "{'64': {'model.hidden_dim': 64}}."
            )
        return {str(label): dict(changes) for label, changes in values.items()}
    choices = {_text(value): {path: value} for value in values}
    if len(choices) < len(values):
        raise ConfigError(f"{where} has a value twice in {list(values)!r}, expected each once. Remove one.")
    return choices


def _check_once(base: Step, dimensions: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    seen: dict[str, str] = {}
    for name, choices in dimensions.items():
        for path in {path for changes in choices.values() for path in changes}:
            if path in seen:
                raise ConfigError(
                    f"grid({base.name!r}) varies {path!r} by {seen[path]!r} and by {name!r}, expected each field once."
                )
            seen[path] = name


def _replaced(config: Any, path: Sequence[str], value: Any, where: str) -> Any:
    """The config with one field of its dataclasses, or one key of a dict, replaced."""
    if not path:
        plain = isinstance(value, Placeholder | VersionedValue) or dataclasses.is_dataclass(value)
        return value if plain else ensure_versioned(value)
    if isinstance(config, VersionedValue):  # versioned as a whole: what is in it is plain
        return versioned(unwrap_versioned_value(_replaced(config.value, path, value, where)))
    if isinstance(config, Mapping):  # its keys may have dots
        return {**config, ".".join(path): _replaced(None, (), value, where)}
    names = [field.name for field in dataclasses.fields(config)] if dataclasses.is_dataclass(config) else []
    if path[0] not in names:
        raise ConfigError(
            f"{where} names no field: {type(config).__name__} has no {path[0]!r}, "
            f"{expected_one_of(path[0], names, 'fields')}"
        )
    return dataclasses.replace(
        config,
        **{path[0]: _replaced(getattr(config, path[0]), path[1:], value, where)},  # type: ignore[arg-type]
    )


def _short(path: str, varied: Varied) -> str:
    """The last part of the path, or all of it if another one ends alike."""
    last = path.rpartition(".")[2]
    return last if sum(other.rpartition(".")[2] == last for other in varied) == 1 else path


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, bool | int | str) or value is None:
        return str(value)
    raise ConfigError(
        f"A grid has the value {value!r}, expected a number, a text, a bool or None. Give other values a label: "
        "{'name': {'path': value}}."
    )


def _as_number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text  # "nan" is a text: JSON has no such number
