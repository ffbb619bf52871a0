"""The scores of suites, by the record of an evaluation and its `results.json`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from marin_assets.stages.report.models_by_tasks.suites.core import CORE, CORE_PLUS_MMLU
from marin_assets.stages.report.models_by_tasks.suites.olmes import OLMES
from marin_assets.stages.report.models_by_tasks.suites.suite import Form, Part, Suite
from marin_assets.stages.report.records import ReportError, StepRecord
from marin_resources.storage.files import read_json
from marin_resources.storage.paths import join

RESULTS = "results.json"
SUITES = (CORE, CORE_PLUS_MMLU, OLMES)
TaskScores: TypeAlias = Mapping[tuple[str, int], tuple[str, Mapping[str, Any]]]
"""(Task of lm-eval, shots) -> the label of its scores, and these by metric."""


@dataclass(frozen=True, kw_only=True)
class FormScore:
    form: Form
    label: str
    """Label of the task's scores in the evaluation."""
    accuracy: float
    error: float | None
    """Standard error of the accuracy."""
    questions: int | None


@dataclass(frozen=True, kw_only=True)
class PartScore:
    part: Part
    best: FormScore
    forms: tuple[FormScore, ...]
    value: float
    """The accuracy of the best form, centered if the suite is."""
    error: float | None


@dataclass(frozen=True, kw_only=True)
class SuiteScore:
    """One model at one suite."""

    suite: Suite
    parts: Mapping[str, PartScore]
    """By the part's name, those that are evaluated in all of their forms."""
    missing: tuple[Form, ...]
    """The forms that the evaluation does not have."""

    @property
    def value(self) -> float | None:
        """The mean over all parts; None if one is missing."""
        return None if self.missing else math.fsum(part.value for part in self.parts.values()) / len(self.parts)

    @property
    def error(self) -> float | None:
        """The standard error of the mean: errors of different tasks are independent, those of one task at two numbers
        of shots, which has the same questions, are added. None if a part has none."""
        by_task: dict[str, float] = defaultdict(float)
        for part in self.parts.values():
            if part.error is None:
                return None
            by_task[part.best.form.task] += part.error
        return None if self.missing else math.hypot(*by_task.values()) / len(self.parts)


def scores_by_task(record: StepRecord) -> TaskScores:
    """Return the scores of an evaluation by the tasks' own names and shots; empty for a step that is none.

    Raises ReportError for a damaged `results.json`.
    """
    names = {label: str(metrics.get("name", label)) for label, metrics in _part_of(record, "results").items()}
    shots = _part_of(record, "n-shot")
    scores = dict(record.result.get("scores") or {})
    complete = [label for label in names if label in shots and label in scores]
    return {(names[label], shots[label]): (label, scores[label]) for label in complete}


def members_of_groups(record: StepRecord) -> set[str]:
    """Return the labels of the tasks that are a member of a group. Raises ReportError for a damaged `results.json`."""
    return {member for members in _part_of(record, "group_subtasks").values() for member in members}


def _part_of(record: StepRecord, part: str) -> Mapping[str, Any]:
    path = join(record.path, RESULTS)
    try:
        return dict(read_json(path).get(part) or {}) if record.has(RESULTS) else {}
    except (ValueError, AttributeError, TypeError) as error:
        raise ReportError(f"{path!r} is damaged ({error}). Evaluate the model again.") from None


def score_suite(suite: Suite, scores: TaskScores) -> SuiteScore:
    parts: dict[str, PartScore] = {}
    missing: list[Form] = []
    for part in suite.parts:
        forms = [_form_score(form, scores) for form in part.forms]
        missing += [form for form, score in zip(part.forms, forms, strict=True) if score is None]
        complete = tuple(score for score in forms if score is not None)
        if len(complete) == len(forms):
            parts[part.name] = _part_score(part, complete, centered=suite.centered)
    return SuiteScore(suite=suite, parts=parts, missing=tuple(missing))


def _form_score(form: Form, scores: TaskScores) -> FormScore | None:
    label, of = scores.get((form.task, form.shots), ("", {}))
    if form.metric not in of:
        return None
    error, questions = of.get(f"{form.metric}_stderr"), of.get("instances")
    return FormScore(form=form, label=label, accuracy=float(of[form.metric]), error=error, questions=questions)


def _part_score(part: Part, forms: Sequence[FormScore], *, centered: bool) -> PartScore:
    best = max(forms, key=lambda score: score.accuracy)
    baseline = (part.baseline or 0.0) if centered else 0.0
    scale = 1 - baseline
    value, error = (best.accuracy - baseline) / scale, None if best.error is None else best.error / scale
    return PartScore(part=part, best=best, forms=tuple(forms), value=value, error=error)


def rows_of(model: str, score: SuiteScore) -> Iterator[dict[str, Any]]:
    """The rows of one model at one suite: its mean if it has one, and each form of each part."""
    head = {"model": model, "suite": score.suite.name}
    if score.value is not None:
        yield {**head, "part": "", "value": score.value, "error": score.error}
    for name, part in score.parts.items():
        for form in part.forms:
            row = {**head, "part": name, "task": form.label, "shots": form.form.shots, "metric": form.form.metric}
            row |= {"accuracy": form.accuracy, "accuracy_error": form.error, "questions": form.questions}
            is_best = form is part.best
            value, error = (part.value, part.error) if is_best else (None, None)
            yield {**row, "baseline": part.part.baseline, "best": is_best, "value": value, "error": error}
