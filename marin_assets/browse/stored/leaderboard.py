"""The scores of all models below the prefixes: of each evaluation the newest complete result.

In:  the places.   Out: models with their scores by task.   Read: the markers by one listing, a record for each model.

A model has the names of its evaluation steps without their first segment: "evaluation/nano" and "perplexity/nano" are
one row. Evaluations of checkpoints, which have partitions, are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from marin_assets.browse.places import Places
from marin_assets.browse.stored.state import OutputState
from marin_assets.stages.report.compare_models import STATISTICS, headline_of, is_lower_better
from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Status
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

EVALUATION, PERPLEXITY = "evaluation", "perplexity"
"""First segments of the names of steps with scores."""
MOST_STEPS, MOST_RESULTS = 1_000, 3
"""Evaluation steps that are read, the newest; and results of a step, until one can be read."""
MOST_TASKS = 2_000
MOST_VALUE = 1e15
THREADS = 16


@dataclass(frozen=True, kw_only=True)
class Score:
    value: float
    error: float | None
    """Standard error."""
    questions: int | None
    place: str
    """Text of the address of the output."""


@dataclass(kw_only=True)
class ScoredModel:
    name: str
    prefix: str
    finished_s: int = 0
    """Time of the newest of its results, seconds since 1970."""
    outputs: dict[str, OutputState] = field(default_factory=dict)
    """Kind of evaluation -> its output."""
    scores: dict[str, dict[str, Score]] = field(default_factory=dict)
    """Task -> its scores by metric."""


def read_models(places: Places) -> tuple[list[ScoredModel], int]:
    """Return the models with a score, and how many evaluation steps are not read because of the limit."""
    models: dict[tuple[str, str], ScoredModel] = {}
    unread = 0
    for prefix in places.prefixes:
        complete = CompleteOutputs(prefix, writes=False)
        steps = [of for name, of in complete.by_name.items() if name.partition("/")[0] in (EVALUATION, PERPLEXITY)]
        steps.sort(key=lambda marks: -marks[0].finished_s)
        unread += len(steps[MOST_STEPS:])
        for mark, path, record in _newest(complete, steps[:MOST_STEPS]):
            text = places.text_of(path)
            kind, _, name = mark.name.partition("/")
            if text is None or not name:
                continue
            scores = dict(scores_in(record.result, kind, text))
            if scores:
                model = models.setdefault((prefix, name), ScoredModel(name=name, prefix=prefix))
                model.finished_s = max(model.finished_s, mark.finished_s)
                model.outputs[kind] = OutputState(place=places.resolve(text), status=Status.SUCCESS, record=record)
                model.scores |= scores
    return list(models.values()), unread


def _newest(complete: CompleteOutputs, steps: Sequence[Sequence[Mark]]) -> Iterator[tuple[Mark, str, Record]]:
    """The newest marker of each step whose output exists, with its path and its record."""

    def read(marks: Sequence[Mark]) -> tuple[Mark, str, Record] | None:
        for mark in marks[:MOST_RESULTS]:
            path = complete.path_of(mark)
            try:
                record = recorded(path, Status.SUCCESS)
            except (ControlFileError, OSError):  # the page of the output has the reason
                continue
            if record is not None:
                return mark, path, record
        return None

    if is_local(complete.prefix):  # threads would take longer to start
        results = list(map(read, steps))
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(read, steps))
    return (result for result in results if result is not None)


def scores_in(result: Mapping[str, Any], kind: str, place: str) -> Iterator[tuple[str, dict[str, Score]]]:
    """Yield the scores of each task by metric: of lm-eval's tasks, or of the sets of a perplexity."""
    by_task = result.get("sets" if kind == PERPLEXITY else "scores")
    for task, numbers in list(by_task.items())[:MOST_TASKS] if isinstance(by_task, Mapping) else ():
        if not isinstance(numbers, Mapping):
            continue
        questions = numbers.get("texts" if kind == PERPLEXITY else "instances")
        count = questions if isinstance(questions, int) else None
        scores = {
            metric: Score(value=value, error=_number(numbers.get(f"{metric}_stderr")), questions=count, place=place)
            for metric, number in numbers.items()
            if isinstance(metric, str) and not metric.endswith(STATISTICS) and (value := _number(number)) is not None
        }
        if usual_metric([scores]) is not None:
            yield str(task), scores


def usual_metric(scores: Sequence[Mapping[str, Score]]) -> str | None:
    """The metric to compare by: the usual one that all have, else that of the first, else its first with an error."""
    common = [metric for metric in scores[0] if all(metric in of for of in scores)]
    with_error = (metric for metric, score in scores[0].items() if score.error is not None)
    return headline_of(common) or headline_of(list(scores[0])) or next(with_error, None)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < MOST_VALUE else None


def tasks_of(models: Sequence[ScoredModel]) -> list[str]:
    """The tasks, those that most models have first; members of a group that is among them last."""
    counts: dict[str, int] = {}
    for model in models:
        for task in model.scores:
            counts[task] = counts.get(task, 0) + 1
    return sorted(counts, key=lambda task: (task.rpartition("/")[0] in counts, -counts[task], task))


def ranked(models: Sequence[ScoredModel], task: str, metric: str) -> list[ScoredModel]:
    """The models by their scores at a task, the best first; then those without one, by name."""
    sign = 1 if is_lower_better(metric) else -1

    def place(model: ScoredModel) -> tuple[bool, float, str]:
        score = model.scores.get(task, {}).get(metric)
        return (score is None, 0.0 if score is None else sign * score.value, model.name)

    return sorted(models, key=place)
