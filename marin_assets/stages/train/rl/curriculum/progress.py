"""Progress in the lessons of a curriculum, from the stored rollouts: a resumed training draws the same lessons.

The batch of step s is planned when the weights of step s - staleness exist: its shares follow from the rollouts of the
steps before that one alone. `curriculum.json` has them for each step; it is written, and never read by the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.curriculum.rules import (
    CLOSED,
    GRADUATED,
    OPEN,
    Curriculum,
    Progress,
    first_progress,
    progress_after,
    weights_of,
)
from marin_assets.stages.train.rl.lessons import Lesson
from marin_assets.stages.train.rl.rollout import Rollout, path_of_step, read_step
from marin_resources.storage.files import write_json
from marin_resources.storage.paths import join

FILE = "curriculum.json"
"""Below the output: a list with an object for each step, of its lessons: state, success, examples and share."""
STATES = {CLOSED: 0.0, OPEN: 1.0, GRADUATED: 2.0}
"""As numbers, in metrics."""


@dataclass(frozen=True, kw_only=True)
class _Step:
    progress: dict[str, Progress]
    weights: dict[str, float]


class LessonProgress:
    """Knows the steps that are planned so far."""

    def __init__(
        self, curriculum: Curriculum | None, lessons: Mapping[str, Lesson], *, output_path: str, staleness: int
    ) -> None:
        self._curriculum, self._lessons = curriculum, lessons
        self._output_path, self._staleness = output_path, staleness
        self._measured, self._progress = 0, dict[str, Progress]()
        self._steps: list[_Step] = []

    def weights_for(self, step: int) -> dict[str, float] | None:
        """The weights of the lessons in the batch of a step; None without a curriculum.

        Raises TrainError if the rollouts of a step that they follow from are not stored.
        """
        if self._curriculum is None:
            return None
        while len(self._steps) <= step:
            self._steps.append(self._next_step(self._curriculum))
        return self._steps[step].weights

    def write(self) -> None:
        """Write what is planned so far."""
        if self._steps:
            write_json(join(self._output_path, FILE), [_row(step) for step in self._steps])

    def metrics(self, step: int) -> dict[str, float]:
        """The lessons in the batch of a step, as metrics."""
        if self.weights_for(step) is None:
            return {}
        rows = _row(self._steps[step])
        return {
            f"rl/lesson_{name}/{lesson}": STATES.get(row[name], row[name])
            for lesson, row in rows.items()
            for name in ("state", "success", "share")
        }

    def _next_step(self, curriculum: Curriculum) -> _Step:
        self._progress = self._progress or first_progress(curriculum, self._lessons)
        while self._measured < len(self._steps) - self._staleness:
            rewards = rewards_of_examples(self._stored(self._measured))
            self._progress = progress_after(curriculum, self._progress, rewards)
            self._measured += 1
        return _Step(progress=self._progress, weights=weights_of(curriculum, self._lessons, self._progress))

    def _stored(self, step: int) -> list[Rollout]:
        if (rollouts := read_step(self._output_path, step)) is None:
            raise TrainError(
                f"The rollouts at {path_of_step(self._output_path, step)!r} are missing, from which the "
                "curriculum follows. Compute the step again from its beginning."
            )
        return rollouts


def rewards_of_examples(rollouts: Sequence[Rollout]) -> list[tuple[str, list[float]]]:
    """The lesson of each example of a step with the rewards of its answers, as far as they were graded."""
    examples: dict[int, tuple[str, list[float]]] = {}
    for rollout in rollouts:
        _, rewards = examples.setdefault(rollout.group, (rollout.lesson, []))
        if rollout.reward is not None:
            rewards.append(rollout.reward)
    return [examples[group] for group in sorted(examples)]


def _row(step: _Step) -> dict[str, Any]:
    total = sum(step.weights.values())
    return {
        name: {key: value for key, value in asdict(of).items() if key != "recent"}
        | {"share": step.weights[name] / total}
        for name, of in step.progress.items()
    }
