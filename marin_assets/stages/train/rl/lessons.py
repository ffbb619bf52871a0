"""The lessons of a training: environments by name, and how often each is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.environment import Environment
from marin_assets.stages.train.specs.bounds import require_at_least
from marin_assets.step.values import Placeholder, versioned
from marin_resources.types.errors import MarinError
from marin_resources.wire.reference import load, reference_to

METHODS = ("example", "prompt", "reward")


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """An environment, from which a share of the examples is drawn."""

    environment: str
    """The class, by its reference: "package.module:Class"."""
    arguments: dict[str, Any] = field(default_factory=lambda: versioned({}))
    """Keyword arguments of the class."""
    paths: dict[str, str] = field(default_factory=dict)
    """More of them: paths of outputs of steps, which enter the version as inputs."""
    extras: tuple[str, ...] = ()
    """Extras of the project that the class needs."""
    weight: float = versioned(1.0)
    """The share of the groups is this, divided by the weights of all lessons."""
    is_trained: bool = versioned(True)
    """False: it is sampled and graded, and no update is made of it, as with problems that are held out."""


def lesson_of(environment: Any, *, weight: float = 1.0, is_trained: bool = True) -> Lesson:
    """Return the lesson of an environment that is a dataclass, all of whose fields enter the version.

    A field that is a path, output_path_of(step), makes the step an input.
    """
    if not dataclasses.is_dataclass(environment) or isinstance(environment, type):
        raise TrainError(
            f"An environment is {environment!r}, expected an object of a dataclass, such as TargetWord(), or a Lesson "
            "with the reference of another class."
        )
    own = {entry.name: getattr(environment, entry.name) for entry in dataclasses.fields(environment) if entry.init}
    paths: dict[str, Any] = {name: value for name, value in own.items() if isinstance(value, Placeholder)}
    arguments = {
        name: list(value) if isinstance(value, tuple) else value for name, value in own.items() if name not in paths
    }
    return Lesson(
        environment=versioned(reference_to(type(environment))),
        arguments=versioned(arguments),
        paths=paths,
        extras=tuple(environment.extras) if isinstance(environment, Environment) else (),
        weight=versioned(weight),
        is_trained=versioned(is_trained),
    )


def check_lessons(lessons: Mapping[str, Lesson]) -> None:
    """Raise TrainError for lessons that could not be drawn. The classes are not imported."""
    if not lessons:
        raise TrainError("lessons is empty, expected at least one environment by name.")
    for name, lesson in lessons.items():
        if not name or "/" in name:
            raise TrainError(f"A lesson is named {name!r}, expected a name without '/', as metrics have it in theirs.")
        if ":" not in lesson.environment:
            raise TrainError(
                f"The lesson {name!r} has the environment {lesson.environment!r}, expected 'package.module:Class'."
            )
        require_at_least(f"The weight of the lesson {name!r}", lesson.weight, 0)
    if not any(lesson.weight for lesson in lessons.values() if lesson.is_trained):
        raise TrainError("No lesson that is trained has a weight above 0: nothing would be learnt. Give one a weight.")


def open_environment(name: str, lesson: Lesson) -> Any:
    """Import the class, and return an object of it, prepared. Raises TrainError for what is no environment."""
    try:
        environment = load(lesson.environment)(**lesson.arguments, **lesson.paths)
    except Exception as error:  # the class is anyone's
        raise TrainError(
            f"The environment {lesson.environment!r} of the lesson {name!r} with {lesson.arguments!r} cannot be opened "
            f"({type(error).__name__}: {error}). Expected an importable class that takes these arguments."
        ) from error
    for method in METHODS:
        if not callable(getattr(environment, method, None)):
            raise TrainError(
                f"The environment {lesson.environment!r} of the lesson {name!r} has no method {method!r}. An "
                f"environment has {', '.join(METHODS)}, and reply if the model has several turns."
            )
    try:
        getattr(environment, "prepare", lambda: None)()
    except Exception as error:  # likewise
        reason = str(error) if isinstance(error, MarinError) else f"{type(error).__name__}: {error}"
        raise TrainError(f"The environment of the lesson {name!r} cannot be prepared: {reason}") from error
    stops = getattr(environment, "stops", ())
    if isinstance(stops, str) or not all(isinstance(stop, str) and stop for stop in stops):
        raise TrainError(f"The environment of the lesson {name!r} has stops={stops!r}, expected texts, none empty.")
    return environment
