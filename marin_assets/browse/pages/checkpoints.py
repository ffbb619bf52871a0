"""The scores of the checkpoints of trainings over their tokens: a chart for each task, and the table of the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.line_chart import DrawnChart, Point, draw_chart
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.checkpoint_scores import (
    NOT_EVALUATED,
    Checkpoint,
    Training,
    evaluations_of_checkpoints,
    read_trainings,
)
from marin_assets.browse.stored.contamination import OF_CHECKPOINTS
from marin_assets.browse.stored.leaderboard import Score, usual_metric
from marin_assets.stages.report.compare_models import is_lower_better
from marin_assets.stages.report.models_by_tasks.significance import Z95

FOLDERS, CHARTS, ROWS, CHOICES = 8, 40, 400, 200
"""Evaluations, tasks and rows of a page; and evaluations to choose from."""
LINKED_POINTS = 3_000
"""Points with links; of more, only the table has them."""
NAMED_GAPS = 12
AXES = ("tokens", "steps")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task by the metric that its checkpoints are compared by."""

    name: str
    metric: str

    @property
    def is_lower_better(self) -> bool:
        return is_lower_better(self.metric)

    def score(self, checkpoint: Checkpoint) -> Score | None:
        return checkpoint.scores.get(self.name, {}).get(self.metric)


def checkpoints(asked: Asked) -> Shown:
    texts = list(dict.fromkeys(asked.query.texts("path")))
    if len(texts) > FOLDERS:
        raise NotThereError(f"path occurs {len(texts)} times, expected at most {FOLDERS} evaluations. Choose fewer.")
    if not texts:
        return _choice(asked, [])
    trainings = read_trainings(asked.places, map(asked.places.resolve, texts))
    part, start = asked.query.text("task"), asked.query.number("start")
    every_task = [task for task in _tasks(trainings) if part.lower() in task.name.lower()]
    tasks = every_task[:CHARTS]
    axis, about_axis = _axis(asked, trainings)
    rows = sorted(
        ((training, of) for training in trainings for of in training.in_order),
        key=lambda row: (_x(row[1], axis), row[0].label),
    )
    charts = [_chart(task, trainings, axis, is_linked=len(rows) * len(tasks) <= LINKED_POINTS) for task in tasks]
    facts = {
        **_choice(asked, texts).facts,
        "trainings": [_training(training) for training in trainings],
        "charts": [
            {"task": task, "chart": chart} for task, chart in zip(tasks, charts, strict=True) if chart is not None
        ],
        "tasks": tasks,
        "total_tasks": len(every_task),
        "rows": [_row(training, of, tasks) for training, of in rows[start : start + ROWS]],
        "total": len(rows),
        "start": start,
        "step": ROWS,
        "axis": axis,
        "other_axis": "" if about_axis else next(other for other in AXES if other != axis),
        "about_axis": about_axis,
        "part": part,
        "missing": OF_CHECKPOINTS,
    }
    return Shown(template="checkpoints", facts=facts)


def _choice(asked: Asked, chosen: Sequence[str]) -> Shown:
    """The evaluations of checkpoints that can be chosen."""
    every = evaluations_of_checkpoints(asked.places)
    choices = [
        {
            "text": text,
            "count": count,
            "finished": f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M}",
            "is_chosen": text in chosen,
        }
        for text, count, time_s in every[:CHOICES]
    ]
    return Shown(
        template="checkpoints_choice",
        facts={"choices": choices, "total_choices": len(every), "chosen": list(chosen), "most": FOLDERS},
    )


def _tasks(trainings: Sequence[Training]) -> list[Task]:
    """All tasks in the order of the evaluations, each by its usual metric."""
    scores: dict[str, list[Mapping[str, Score]]] = {}
    for training in trainings:
        for checkpoint in training.in_order:
            for task, of in checkpoint.scores.items():
                scores.setdefault(task, []).append(of)
    return [Task(name=name, metric=usual_metric(of) or "") for name, of in scores.items()]


def _axis(asked: Asked, trainings: Sequence[Training]) -> tuple[str, str]:
    """The axis, and why it cannot be tokens; empty if it can."""
    axis = asked.query.text("axis") or AXES[0]
    if axis not in AXES:
        raise NotThereError(f"axis is {axis!r:.60}, expected 'tokens' or 'steps'. Correct the address.")
    unknown = [of.label for of in trainings if any(point.tokens is None for point in of.in_order)]
    if unknown:
        return "steps", (
            f"The tokens of {', '.join(unknown)} are not known, so the axis is steps: the training is not shown here, "
            "or its record lacks the length of its sequences."
        )
    return axis, ""


def _x(checkpoint: Checkpoint, axis: str) -> int:
    return checkpoint.step if axis == "steps" or checkpoint.tokens is None else checkpoint.tokens


def _chart(task: Task, trainings: Sequence[Training], axis: str, *, is_linked: bool) -> DrawnChart | None:
    last_x = max((_x(of, axis) for training in trainings for of in training.in_order), default=0)
    lines = [
        [(_x(of, axis), _point(task, training, of, axis, is_linked)) for of in training.in_order]
        for training in trainings
    ]
    chances = {
        of.scores[task.name]["chance"].value
        for training in trainings
        for of in training.in_order
        if "chance" in of.scores.get(task.name, {})
    }
    return draw_chart(lines, last_x, chances.pop() if len(chances) == 1 else None)


def _point(task: Task, training: Training, checkpoint: Checkpoint, axis: str, is_linked: bool) -> Point | None:
    score = task.score(checkpoint)
    if score is None:
        return None
    half = None if score.error is None else Z95 * score.error
    error = "" if half is None else f" ±{half:.3f}"
    tokens = "" if checkpoint.tokens is None else f", {checkpoint.tokens:,} tokens"
    return Point(
        x=_x(checkpoint, axis),
        y=score.value,
        half=half,
        title=f"{training.label}, step {checkpoint.step:,}{tokens}: {score.value:.3f}{error}",
        link=address("output", path=next(iter(checkpoint.outputs.values()))) if is_linked else "",
    )


def _training(training: Training) -> dict[str, Any]:
    """The part of the legend of a training: links, and the checkpoints that are not evaluated, by kind."""
    gaps = []
    for kind in training.kinds:
        without = [of.step for of in training.in_order if kind not in of.outputs or kind in of.states]
        more = f" and {len(without) - NAMED_GAPS:,} more" if len(without) > NAMED_GAPS else ""
        if without:
            steps = ", ".join(f"{step:,}" for step in without[:NAMED_GAPS])
            gaps.append({"kind": kind, "count": len(without), "steps": f"{steps}{more}"})
    return {
        "label": training.label,
        "text": training.text,
        "kinds": training.kinds,
        "count": len(training.checkpoints),
        "gaps": gaps,
    }


def _row(training: Training, checkpoint: Checkpoint, tasks: Sequence[Task]) -> dict[str, Any]:
    states = {
        kind: checkpoint.states.get(kind, "" if kind in checkpoint.outputs else NOT_EVALUATED)
        for kind in training.kinds
    }
    return {
        "label": training.label,
        "step": checkpoint.step,
        "tokens": checkpoint.tokens,
        "outputs": [
            {
                "kind": kind,
                "link": address("output", path=checkpoint.outputs[kind]) if kind in checkpoint.outputs else "",
                "state": state,
            }
            for kind, state in states.items()
        ],
        "cells": [_cell(task.score(checkpoint)) for task in tasks],
    }


def _cell(score: Score | None) -> tuple[str, str] | None:
    """Value, and half of its interval; None for no score."""
    if score is None:
        return None
    return f"{score.value:.3f}", "" if score.error is None else f"{Z95 * score.error:.3f}"
