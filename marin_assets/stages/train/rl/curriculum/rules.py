"""A curriculum: how often each lesson is drawn, by how well the model does in it.

A lesson that is solved half of the time teaches most, one that is always or never solved nothing: its weight is
4p(1 - p), by the smoothed share p of answers with a reward. New lessons weigh more. A lesson opens when the model is
good at those before it, and does not become better. These are the rules of Marin's curriculum
(marin-community/marin, marin.rl.curriculum, 2025), per example in place of per answer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.lessons import Lesson
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.step.values import versioned
from marin_resources.types.near_names import expected_one_of

CLOSED, OPEN, GRADUATED = "closed", "open", "graduated"
SHARES = ("prior", "smoothing", "opens_at", "graduates_at", "least_weight")


@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Rules for the lessons that are trained. Others keep the share that their weight gives them."""

    opens_after: dict[str, tuple[str, ...]] = field(default_factory=lambda: versioned({}))
    """The lessons that must be learnt before a lesson opens; one that is not named is open from the beginning."""
    opens_at: float = versioned(0.5)
    """A lesson is learnt when its success is at least this, and has a plateau."""
    graduates_at: float = versioned(0.95)
    """A lesson with at least this success and a plateau is drawn no more, as long as another one is open."""
    rewarded_above: float = versioned(0.0)
    """An answer is a success if its reward is above this."""
    prior: float = versioned(0.5)
    """The success of a lesson before its first example."""
    smoothing: float = versioned(0.1)
    """Weight of the last example in the success, an exponential moving average."""
    newness: float = versioned(100.0)
    """A lesson with n examples weighs 1 + exp(-n / newness) times as much."""
    least_weight: float = versioned(0.1)
    """The least of an open lesson."""
    plateau_examples: int = versioned(50)
    """The success has a plateau if over these examples it neither moves nor varies by more than the next two."""
    plateau_slope: float = versioned(0.1)
    """Change of the least-squares line over the plateau."""
    plateau_variation: float = versioned(0.1)
    """Standard deviation, divided by the mean."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a lesson."""

    state: str
    success: float
    examples: int = 0
    recent: tuple[float, ...] = ()
    """The success after each of the last examples, as many as a plateau has."""


def first_progress(curriculum: Curriculum, lessons: Mapping[str, Lesson]) -> dict[str, Progress]:
    """The states of the lessons that are trained, before the first step."""
    return {
        name: Progress(state=CLOSED if curriculum.opens_after.get(name) else OPEN, success=curriculum.prior)
        for name, lesson in sorted(lessons.items())
        if lesson.is_trained
    }


def progress_after(
    curriculum: Curriculum, before: Mapping[str, Progress], rewards: Sequence[tuple[str, Sequence[float]]]
) -> dict[str, Progress]:
    """The states after a step. `rewards`: the lesson of each example of the step, with the rewards of its answers."""
    after = dict(before)
    for name, of_answers in rewards:
        if name in after and of_answers:
            after[name] = _with_example(curriculum, after[name], of_answers)
    for name, progress in after.items():
        if progress.state == OPEN and _is_learnt(curriculum, progress, curriculum.graduates_at):
            after[name] = replace(progress, state=GRADUATED)
        elif progress.state == CLOSED and all(
            _is_learnt(curriculum, after[earlier], curriculum.opens_at) for earlier in curriculum.opens_after[name]
        ):
            after[name] = replace(progress, state=OPEN)
    return after


def weights_of(
    curriculum: Curriculum, lessons: Mapping[str, Lesson], progress: Mapping[str, Progress]
) -> dict[str, float]:
    """The weights by which the lessons are drawn. Those of the curriculum share the sum of their own weights."""
    drawn = [name for name, of in progress.items() if of.state == OPEN and lessons[name].weight]
    drawn = drawn or [name for name, of in progress.items() if of.state == GRADUATED]
    weights = {name: lessons[name].weight * weight_of(curriculum, progress[name]) for name in drawn}
    total, shared = sum(weights.values()), sum(lessons[name].weight for name in progress)
    own = {name: lesson.weight for name, lesson in lessons.items() if name not in progress}
    return {**own, **{name: shared * weights.get(name, 0.0) / total for name in progress}}


def weight_of(curriculum: Curriculum, progress: Progress) -> float:
    """The weight of an open lesson: 4p(1 - p) by its success p, at least `least_weight`, more if it is new."""
    p = progress.success
    return max(4 * p * (1 - p) * (1 + math.exp(-progress.examples / curriculum.newness)), curriculum.least_weight)


def has_plateau(curriculum: Curriculum, recent: Sequence[float]) -> bool:
    """Whether the success has neither moved nor varied over the last examples."""
    if len(recent) < curriculum.plateau_examples:
        return False
    mean, slope = statistics.fmean(recent), statistics.linear_regression(range(len(recent)), recent).slope
    return (
        abs(slope) * len(recent) <= curriculum.plateau_slope
        and statistics.pstdev(recent) <= curriculum.plateau_variation * mean
    )


def check_curriculum(curriculum: Curriculum, lessons: Mapping[str, Lesson]) -> None:
    """Raise TrainError for a curriculum that these lessons cannot follow."""
    for name in SHARES:
        if not 0 <= getattr(curriculum, name) <= 1:
            raise TrainError(f"The curriculum has {name}={getattr(curriculum, name)!r}, expected a number from 0 to 1.")
    require_above_0("The curriculum's newness", curriculum.newness)
    require_at_least("The curriculum's plateau_examples", curriculum.plateau_examples, 2)
    for name in ("plateau_slope", "plateau_variation", "least_weight"):
        require_above_0(f"The curriculum's {name}", getattr(curriculum, name))
    trained = sorted(name for name, lesson in lessons.items() if lesson.is_trained)
    for name in (*curriculum.opens_after, *chain.from_iterable(curriculum.opens_after.values())):
        if name not in trained:
            raise TrainError(f"opens_after of the curriculum has {name!r}, {expected_one_of(name, trained)}")
    opened: list[str] = []
    while closed := [name for name in trained if name not in opened]:
        next_ones = [name for name in closed if set(curriculum.opens_after.get(name, ())) <= set(opened)]
        if not next_ones:
            raise TrainError(
                f"opens_after of the curriculum lets none of {', '.join(closed)} open, as each waits for another. "
                "Leave one of them without a lesson before it."
            )
        opened += next_ones
    if not any(lessons[name].weight for name in trained if not curriculum.opens_after.get(name)):
        raise TrainError("No lesson that is open from the beginning has a weight above 0. Give one a weight.")


def _with_example(curriculum: Curriculum, before: Progress, rewards: Sequence[float]) -> Progress:
    share = sum(reward > curriculum.rewarded_above for reward in rewards) / len(rewards)
    success = (1 - curriculum.smoothing) * before.success + curriculum.smoothing * share
    return replace(
        before,
        success=success,
        examples=before.examples + 1,
        recent=(*before.recent, success)[-curriculum.plateau_examples :],
    )


def _is_learnt(curriculum: Curriculum, progress: Progress, threshold: float) -> bool:
    return progress.success >= threshold and has_plateau(curriculum, progress.recent)
