"""Compare models by their scores: tasks by models in one table, with errors; what is more than noise is marked.

In:  the outputs of evaluations (evaluate_with_lm_eval, evaluate_with_inspect), by model.
Out: `comparison.html`, the table as one page; `scores.jsonl`, a row for each model, task and metric;
     `differences.jsonl`, a row for each difference from the baseline, with its error and p-values; `suites.jsonl`, the
     scores of the suites of tasks that a model has all of, such as the centered ones of Marin's core tasks.

A difference from the baseline is more than noise if its p-value is at most 0.05 after the correction for
all differences of the table (`models_by_tasks/significance.py`). Where both models answered the same questions
(`samples.jsonl`), it is that of the paired differences, which are less noisy; otherwise that of independent scores.

The page has for each score how many questions of the task are in the training data of the model, or that nobody looked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.stages.report.models_by_tasks.cells import PASSAGE, Cell, Samples, cell_of, corrected
from marin_assets.stages.report.models_by_tasks.contamination import (
    NOBODY_LOOKED,
    NOT_ON_RECORD,
    ModelContamination,
    contamination_by_task,
    not_searched_in,
)
from marin_assets.stages.report.models_by_tasks.page import POINT, table_page
from marin_assets.stages.report.models_by_tasks.suites.scores import (
    SUITES,
    SuiteScore,
    rows_of,
    score_suite,
    scores_by_task,
)
from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_assets.stages.report.views import page_address, view_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import read_json, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

PAGE, SCORES, DIFFERENCES, OF_SUITES = "comparison.html", "scores.jsonl", "differences.jsonl", "suites.jsonl"
SAMPLES, RESULTS, TABLE = "samples.jsonl", "results.json", "scores.csv"
"""Files of an evaluation: answers, the harness's results, a row for each score."""
HEADLINES = ("acc_mutual_info", "acc_norm", "acc", "exact_match", "accuracy", "f1", "bits_per_byte", "byte_perplexity")
"""Metrics of a task without a named one: the first of these that it has, without a filter or with one; else its first
metric with an error."""
STATISTICS = ("_stderr", "_lower95", "_upper95")
"""Ends of the names of what belongs to a metric."""
LOWER_IS_BETTER = re.compile(
    r"(?:^|_)(?:bits_per_byte|perplexity|ppl|loss|nll|ter|wer|cer|brier|ece|mse|mae|rmse|error|errors)(?:_|$)"
)
"""Metrics of which less is better, where an evaluation does not note it. lm-eval's own are among them."""


@dataclass(frozen=True, kw_only=True)
class CompareModelsConfig:
    models: dict[str, str]
    """Name -> output of an evaluation."""
    output_path: str = THIS_OUTPUT_PATH
    baseline: str | None = versioned(None)
    """The model to compare with; the first one if None."""
    metrics: dict[str, str] = field(default_factory=lambda: versioned({}))
    """Task -> its metric; see HEADLINES."""
    title: str = versioned("Models by tasks")
    browser: str = ""
    """Address of a data browser, to which the numbers of the page lead. Without one they name the command."""

    contaminations: dict[str, str] = field(default_factory=dict)
    """Name -> output of `score_contaminated`, of this very evaluation. Of the others nobody looked."""
    not_on_record: tuple[str, ...] = ()
    """Models without training data on record, such as downloaded ones."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def compare_models(config: CompareModelsConfig) -> dict[str, Any]:
    """Compare every model with the baseline, task by task.

    Returns models, tasks, missing (scores that a model does not have), better and worse (differences from the baseline
    that are more than noise, over all models), regressions (of each model that is worse at some tasks: these), macro
    (by model: the mean over the tasks in `averaged`), suites (suite -> model -> its score, where it has one) and page.
    Raises ReportError for fewer than two models, an unknown baseline or metric, models without a task in common, or a
    contamination of another evaluation.
    """
    _check(config)
    baseline = next(iter(config.models)) if config.baseline is None else config.baseline
    records = read_records(config.models)
    contamination = {name: _contamination(config, records[name]) for name in config.models}
    scores = {name: dict(records[name].result.get("scores") or {}) for name in config.models}
    tasks = list(dict.fromkeys(task for of in scores.values() for task in of))
    metrics = {task: metric_of(task, scores, config.metrics) for task in tasks}
    directions = _directions(records.values())
    lower = {task: not directions.get((task, metrics[task]), not is_lower_better(metrics[task])) for task in tasks}
    members = _members(records.values(), tasks)
    samples: dict[str, Samples] = {}
    answered: dict[str, set[str]] = {}
    for name in config.models:
        answers, answered[name] = _samples(records[name])
        samples[name] = {**answers, **_of_groups(answers, members)}
    cells = {
        task: {
            name: cell_of(task, metrics[task], name, baseline, scores, samples)
            for name in config.models
            if metrics[task] in scores[name].get(task, {})
        }
        for task in tasks
    }
    cells = corrected(cells, lower)
    for task, of in cells.items():
        comparable = [name for name in of if task in answered[name] and not lower[task]]
        for name in comparable if baseline in comparable and len(comparable) > 1 else ():
            beside = [other for other in comparable if other != baseline] if name == baseline else [name]
            viewed = [records[other] for other in (baseline, *beside)]
            of[name] = replace(of[name], view=view_of(config.browser, viewed, task, metrics[task]))
    shared = [task for task in tasks if len(cells[task]) == len(config.models)]
    if not shared:
        raise ReportError(
            f"The models {', '.join(map(repr, config.models))} have no task in common. Evaluate them on the same tasks."
        )
    averaged = tasks_to_average({task: cells[task] for task in shared}, lower, members)
    macro = {
        name: math.fsum(cells[task][name].value for task in averaged) / len(averaged)
        for name in (config.models if averaged else ())
    }
    suites = _suites({name: records[name] for name in config.models})
    page = table_page(
        config.title,
        baseline,
        list(config.models),
        metrics,
        lower,
        cells,
        macro,
        averaged,
        contamination,
        [*suites.values()],
    )
    write_bytes(join(config.output_path, PAGE), page)
    of_suites = [row for of in suites.values() for name, score in of.items() for row in rows_of(name, score)]
    for name, rows in (
        (SCORES, _rows(scores)),
        (DIFFERENCES, _difference_rows(metrics, cells)),
        *([(OF_SUITES, of_suites)] if of_suites else []),
    ):
        write_bytes(join(config.output_path, name), "".join(json.dumps(row) + "\n" for row in rows).encode())
    worse = {
        name: [task for task in tasks if name in cells[task] and cells[task][name].outcome == "worse"]
        for name in config.models
    }
    every = [cell for of in cells.values() for cell in of.values()]
    return {
        "models": len(config.models),
        "tasks": len(tasks),
        "baseline": baseline,
        "missing": len(tasks) * len(config.models) - len(every),
        "better": sum(cell.outcome == "better" for cell in every),
        "worse": sum(cell.outcome == "worse" for cell in every),
        "regressions": {name: regressed for name, regressed in worse.items() if regressed},
        "macro": macro,
        "averaged": averaged,
        "suites": {
            suite: {name: score.value for name, score in of.items() if score.value is not None}
            for suite, of in suites.items()
        },
        "page": PAGE,
    }


def _check(config: CompareModelsConfig) -> None:
    if len(config.models) < 2:
        raise ReportError(f"A comparison has {len(config.models)} models, expected at least two. Pass models={{…}}.")
    baseline = config.baseline
    if baseline is not None and baseline not in config.models:
        raise ReportError(f"The baseline is {baseline!r}, {expected_one_of(baseline, config.models, 'models')}")
    for name in config.contaminations:
        if name not in config.models:
            raise ReportError(f"contaminations names {name!r}, {expected_one_of(name, config.models, 'models')}")


def _contamination(config: CompareModelsConfig, evaluation: StepRecord) -> ModelContamination:
    name = evaluation.label
    if name not in config.contaminations:
        return ModelContamination(missing=NOT_ON_RECORD if name in config.not_on_record else NOBODY_LOOKED)
    record = read_records({name: config.contaminations[name]})[name]
    if not {evaluation.path, evaluation.own_path}.intersection(record.dependencies):
        raise ReportError(
            f"The contamination of {name!r} at {record.path!r} is not of the evaluation {evaluation.path!r}. Pass a "
            "step of default_contamination that has this evaluation."
        )
    return ModelContamination(
        tasks=contamination_by_task(record.result),
        not_searched=not_searched_in(record.result),
        link=page_address(config.browser, join(record.path, str(record.result.get("page")))),
    )


def metric_of(task: str, scores: Mapping[str, Mapping[str, Any]], named: Mapping[str, str]) -> str:
    """The metric of a task: the named one, or the first of HEADLINES that a model has.

    A metric with a filter is named as here or as in lm-eval: "exact_match_strict-match", "exact_match,strict-match".
    """
    available = next(of[task] for of in scores.values() if task in of)
    if task in named:
        name = named[task].removesuffix(",none").replace(",", "_")
        if name not in available:
            raise ReportError(f"The task {task!r} has no metric {named[task]!r}, expected one of {sorted(available)}.")
        return name
    with_errors = [name for name in available if f"{name}_stderr" in available]
    chosen = headline_of(list(available)) or next(iter(with_errors), None)
    if chosen is None:
        raise ReportError(
            f"The task {task!r} has none of the usual metrics: {sorted(available)}. Name one in metrics={{…}}."
        )
    return chosen


def headline_of(names: Sequence[str]) -> str | None:
    """The first of HEADLINES among the metrics, or the first of them with a filter. None without one."""
    metrics = [name for name in names if not name.endswith(STATISTICS)]
    for headline in HEADLINES:
        if headline in metrics:
            return headline
        if with_filter := [name for name in metrics if name.startswith(f"{headline}_")]:
            return with_filter[0]
    return None


def tasks_to_average(
    cells: Mapping[str, Mapping[str, Cell]], lower: Mapping[str, bool], members: Mapping[str, str]
) -> list[str]:
    """The tasks whose scores have one scale, from 0 to 1 and more is better; of a group among them, the group alone."""
    return [
        task
        for task, of in cells.items()
        if not lower[task] and members.get(task) not in cells and all(0 <= cell.value <= 1 for cell in of.values())
    ]


def _suites(records: Mapping[str, StepRecord]) -> dict[str, dict[str, SuiteScore]]:
    """Suite -> model -> its scores, of the suites that one model at least has all tasks of."""
    scores = {name: scores_by_task(record) for name, record in records.items()}
    by_suite = {suite.name: {name: score_suite(suite, of) for name, of in scores.items()} for suite in SUITES}
    return {suite: of for suite, of in by_suite.items() if any(score.value is not None for score in of.values())}


def _directions(records: Iterable[StepRecord]) -> dict[tuple[str, str], bool]:
    """(task, metric) -> whether more is better, of the scores whose evaluation notes it."""
    notes: dict[tuple[str, str], bool] = {}
    for record in records:
        for row in record.csv_rows(TABLE) if record.has(TABLE) else ():
            if row.get("higher_is_better") in ("True", "False"):
                notes[row.get("task", ""), row.get("metric", "")] = row["higher_is_better"] == "True"
    return notes


def _of_groups(samples: Samples, members: Mapping[str, str]) -> Samples:
    """The answers to the questions of each group's members, and of their members; a group has none of its own."""
    groups: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for task, rows in samples.items():
        above: list[str] = []
        while (group := members.get(above[-1] if above else task)) is not None and group not in (task, *above):
            above.append(group)
        for group in above:
            if group not in samples:
                groups.setdefault(group, {}).update({(task, doc_id): row for doc_id, row in rows.items()})
    return groups


def _members(records: Iterable[StepRecord], tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a group that it is in, of the groups among the tasks."""
    members: dict[str, str] = {task: task.rpartition("/")[0] for task in tasks if task.rpartition("/")[0] in tasks}
    for record in records:
        for group, of in _groups(record).items():
            members |= {task: group for task in of if group in tasks and task != group}
    return members


def _groups(record: StepRecord) -> Mapping[str, Sequence[str]]:
    path = join(record.path, RESULTS)
    if not record.has(RESULTS):
        return {}
    try:
        return dict(read_json(path).get("group_subtasks") or {})
    except (ValueError, AttributeError) as error:
        raise ReportError(f"{path!r} is damaged ({error}). Evaluate the model again.") from None


def _samples(record: StepRecord) -> tuple[Samples, set[str]]:
    """The answers without their texts, which would fill the memory. And the tasks whose rows have the texts of
    questions."""
    by_task: dict[str, dict[Any, dict[str, Any]]] = {}
    answered: set[str] = set()
    for row in record.rows(SAMPLES) if record.has(SAMPLES) else ():
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float) or name == PASSAGE}
        by_task.setdefault(row["task"], {}).setdefault(row["doc_id"], {}).update(numbers)
        if "context" in row:
            answered.add(row["task"])
    return by_task, answered


def _rows(scores: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterable[dict[str, Any]]:
    """The normalized table: model, task, metric, value, error, instances."""
    for model, of in scores.items():
        for task, task_scores in of.items():
            for metric, value in task_scores.items():
                if metric == "instances" or metric.endswith(STATISTICS):
                    continue
                row = {"model": model, "task": task, "metric": metric, "value": value}
                yield {**row, "error": task_scores.get(f"{metric}_stderr"), "instances": task_scores.get("instances")}


def is_lower_better(metric: str) -> bool:
    return LOWER_IS_BETTER.search(metric) is not None


def _difference_rows(metrics: Mapping[str, str], cells: Mapping[str, Mapping[str, Cell]]) -> Iterable[dict[str, Any]]:
    for task, of in cells.items():
        for name, cell in of.items():
            if (tested := cell.tested) is not None:
                row = {"model": name, "task": task, "metric": metrics[task], "difference": tested.value}
                row |= {"error": tested.error, "p": tested.p, "p_corrected": cell.p_corrected, "outcome": cell.outcome}
                row |= {"questions": tested.questions, "passages": tested.passages, "smallest": tested.smallest}
                yield {**row, "questions_for_0.01": tested.questions_for(POINT)}
