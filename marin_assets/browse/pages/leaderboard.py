"""The models below the prefixes that are shown, by their scores at a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.scores import in_training
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.contamination import Contamination, contamination_of
from marin_assets.browse.stored.leaderboard import Score, ScoredModel, ranked, read_models, tasks_of, usual_metric
from marin_assets.stages.report.compare_models import is_lower_better
from marin_resources.types.near_names import expected_one_of

COLUMNS, ROWS = 12, 100
"""Tasks and models of a page."""
Z95 = 1.96


def leaderboard(asked: Asked) -> Shown:
    name, part, by = asked.query.text("name"), asked.query.text("task"), asked.query.text("by")
    start = asked.query.number("start")
    everything, unread = read_models(asked.places)
    models = [model for model in everything if name.lower() in model.name.lower()]
    every_task = [task for task in tasks_of(models) if part.lower() in task.lower()]
    if by and by not in every_task:
        raise NotThereError(f"by is {by[:200]!r}, {expected_one_of(by[:200], every_task, 'tasks')}")
    tasks = every_task[:COLUMNS] if not by or by in every_task[:COLUMNS] else [by, *every_task[: COLUMNS - 1]]
    columns = [Column.of(task, models) for task in tasks]
    first = next((column for column in columns if column.task == by), columns[0] if columns else None)
    order = models if first is None else ranked(models, first.task, first.metric)
    shown = order[start : start + ROWS]
    contamination = contamination_of(asked.places, [output for model in shown for output in model.outputs.values()])
    facts = {
        "columns": [
            {
                "task": column.task,
                "metric": column.metric,
                "is_lower_better": is_lower_better(column.metric),
                "is_order": column is first,
                "address": address("leaderboard", name=name, task=part, by=column.task),
            }
            for column in columns
        ],
        "rows": [_row(asked, model, columns, contamination) for model in shown],
        "total": len(models),
        "tasks": len(every_task),
        "unread": unread,
        "name": name,
        "task": part,
        "by": by,
        "start": start,
        "next": start + ROWS if start + ROWS < len(order) else None,
        "prefixes": asked.places.prefixes,
    }
    return Shown(template="leaderboard", facts=facts)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A task by the metric that its models are compared by."""

    task: str
    metric: str
    best: float

    @classmethod
    def of(cls, task: str, models: Sequence[ScoredModel]) -> Column:
        scores = [model.scores[task] for model in models if task in model.scores]
        metric = usual_metric(scores) or ""
        values = [of[metric].value for of in scores if metric in of]
        return cls(task=task, metric=metric, best=(min if is_lower_better(metric) else max)(values))


def _row(
    asked: Asked, model: ScoredModel, columns: Sequence[Column], contamination: Mapping[str, Contamination]
) -> dict[str, Any]:
    return {
        "name": model.name,
        "prefix": model.prefix if len(asked.places.prefixes) > 1 else "",
        "places": [(kind, address("output", path=of.place.text)) for kind, of in sorted(model.outputs.items())],
        "finished": f"{datetime.fromtimestamp(model.finished_s, UTC):%Y-%m-%d %H:%M}",
        "cells": [
            _cell(model.scores.get(column.task, {}).get(column.metric), column, contamination) for column in columns
        ],
    }


def _cell(score: Score | None, column: Column, contamination: Mapping[str, Contamination]) -> dict[str, Any] | None:
    """None for no score."""
    if score is None:
        return None
    return {
        "value": f"{score.value:.3f}",
        "half": "" if score.error is None else f"{Z95 * score.error:.3f}",
        "questions": score.questions,
        "is_best": score.value == column.best,
        "address": address("output", path=score.place),
        "training": in_training(contamination[score.place], column.task),
    }
