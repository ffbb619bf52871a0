"""Compare models by their scores: tasks by models in one table, with errors; what is more than noise is marked.

In:  the outputs of evaluations (evaluate_with_lm_eval), by model.
Out: `comparison.html`, the table as one page; `scores.jsonl`, a row for each model, task and metric;
     `differences.jsonl`, a row for each difference from the baseline, with its error and p-values.

A difference from the baseline is more than noise if its p-value is below 0.05 after Holm's correction for all
differences of the table (`significance.py`). Where both models answered the same questions (`samples.jsonl`), it is
that of the paired differences, which are less noisy; otherwise that of independent scores.

Tasks are rows and models columns, so that 50 tasks by 20 models stay readable: the first column and the head stay where
they are, values have three digits, errors are small. A cell is coloured where it differs from the baseline by more than
noise; the best of a row is bold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, TypeAlias

from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_assets.stages.report.significance import ALPHA, Z95, Difference, clustered_error, holm, independent, paired
from marin_assets.stages.report.views import about_views, linked, title_with, view_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import read_json, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

PAGE, SCORES, DIFFERENCES = "comparison.html", "scores.jsonl", "differences.jsonl"
SAMPLES, RESULTS, TABLE = "samples.jsonl", "results.json", "scores.csv"
"""Files of an evaluation: answers, lm-eval's results, a row for each score."""
PASSAGE = "passage"
"""The field of an answer with the name of the text that its question shares with others."""
HEADLINES = ("acc_mutual_info", "acc_norm", "acc", "exact_match", "f1", "bits_per_byte", "byte_perplexity")
"""Metrics of a task without a named one: the first of these that it has, without a filter or with one; else its first
metric with an error."""
STATISTICS = ("_stderr", "_lower95", "_upper95")
"""Ends of the names of what belongs to a metric."""
LOWER_IS_BETTER = re.compile(
    r"(?:^|_)(?:bits_per_byte|perplexity|ppl|loss|nll|ter|wer|cer|brier|ece|mse|mae|rmse|error|errors)(?:_|$)"
)
"""Metrics of which less is better, where an evaluation does not note it. lm-eval's own are among them."""
POINT = 0.01
"""The difference for which the page has a number of questions."""

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 24px; color: #222 }}
table {{ border-collapse: separate; border-spacing: 0 }}
th, td {{ padding: 4px 10px; text-align: right; white-space: nowrap; background: #fff }}
td, tbody th {{ border-bottom: 1px solid #e3e3e3 }}
thead th {{ position: sticky; top: 0; vertical-align: bottom; border-bottom: 2px solid #999; z-index: 1 }}
th.task {{ position: sticky; left: 0; text-align: left; font-weight: normal; z-index: 1 }}
thead th.task {{ z-index: 2 }} thead span {{ writing-mode: vertical-rl; transform: rotate(180deg); max-height: 220px;
 overflow-wrap: anywhere; white-space: normal; text-align: left }}
td a {{ color: inherit; text-decoration-color: #999 }}
small {{ color: #777 }} td.better {{ background: #d5f0da }} td.worse {{ background: #fbd9d6 }}
tr.mean td, tr.mean th {{ border-bottom: 2px solid #999 }} .muted {{ color: #666; max-width: 60em }}
tbody tr:hover td, tbody tr:hover th {{ box-shadow: inset 0 -2px #888 }}
</style></head><body>
"""


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

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def compare_models(config: CompareModelsConfig) -> dict[str, Any]:
    """Compare every model with the baseline, task by task.

    Returns models, tasks, missing (scores that a model does not have), better and worse (differences from the baseline
    that are more than noise, over all models), regressions (of each model that is worse at some tasks: these), macro
    (by model: the mean over the tasks in `averaged`) and page. Raises ReportError for fewer than two models, an
    unknown baseline or metric, or models without a task in common.
    """
    _check(config)
    baseline = next(iter(config.models)) if config.baseline is None else config.baseline
    records = read_records(config.models)
    scores = {name: dict(records[name].result.get("scores") or {}) for name in config.models}
    tasks = list(dict.fromkeys(task for of in scores.values() for task in of))
    metrics = {task: metric_of(task, scores, config.metrics) for task in tasks}
    directions = _directions(records.values())
    lower = {task: not directions.get((task, metrics[task]), not is_lower_better(metrics[task])) for task in tasks}
    samples: dict[str, Samples] = {}
    answered: dict[str, set[str]] = {}
    for name in config.models:
        samples[name], answered[name] = _samples(records[name])
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
    averaged = tasks_to_average({task: cells[task] for task in shared}, lower, _members(records.values(), tasks))
    macro = {
        name: math.fsum(cells[task][name].value for task in averaged) / len(averaged)
        for name in (config.models if averaged else ())
    }
    page = table_page(config.title, baseline, list(config.models), metrics, lower, cells, macro, averaged)
    write_bytes(join(config.output_path, PAGE), page)
    for name, rows in ((SCORES, _rows(scores)), (DIFFERENCES, _difference_rows(metrics, cells))):
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
        "page": PAGE,
    }


def _check(config: CompareModelsConfig) -> None:
    if len(config.models) < 2:
        raise ReportError(f"A comparison has {len(config.models)} models, expected at least two. Pass models={{…}}.")
    baseline = config.baseline
    if baseline is not None and baseline not in config.models:
        raise ReportError(f"The baseline is {baseline!r}, {expected_one_of(baseline, config.models, 'models')}")


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


Samples: TypeAlias = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""Task -> id of the question -> the numbers of the answer, and its passage."""


def cell_of(
    task: str,
    metric: str,
    name: str,
    baseline: str,
    scores: Mapping[str, Mapping[str, Any]],
    samples: Mapping[str, Samples],
) -> Cell:
    """One model at one task: value, error, and its difference from the baseline with the error of that."""
    mine, theirs = scores[name][task], scores[baseline].get(task, {})
    value, error = float(mine[metric]), mine.get(f"{metric}_stderr")
    if name == baseline or metric not in theirs:
        return Cell(value=value, error=error)
    other, other_error = float(theirs[metric]), theirs.get(f"{metric}_stderr")
    tested = paired_difference(metric, value - other, samples[name].get(task, {}), samples[baseline].get(task, {}))
    if tested is None and error is not None and other_error is not None:
        tested = independent(value - other, error, other_error)
    return Cell(value=value, error=error, difference=value - other, tested=tested)


def paired_difference(
    metric: str, difference: float, mine: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]
) -> Difference | None:
    """The mean difference over the same questions, tested; None if they are not the same, or one.

    `difference` is that of the scores: rows with another mean do not show its error, and None is returned.
    """
    if len(mine) < 2 or mine.keys() != theirs.keys():
        return None
    pairs = scored_pairs(metric, mine, theirs)
    if len(pairs) < len(mine):
        return None
    passages: list[Hashable] = [row.get(PASSAGE, place) for place, row in enumerate(mine.values())]
    tested = paired([my_score - their_score for my_score, their_score in pairs], passages)
    is_theirs = tested is not None and math.isclose(tested.value, difference, rel_tol=1e-6, abs_tol=1e-9)
    return tested if is_theirs else None


def corrected(cells: Mapping[str, Mapping[str, Cell]], lower: Mapping[str, bool]) -> dict[str, dict[str, Cell]]:
    """The cells with their p-values after Holm's correction for all of them, and what is more than noise marked."""
    every = [(task, name, cell.tested) for task, of in cells.items() for name, cell in of.items()]
    tests = {(task, name): tested.p for task, name, tested in every if tested is not None}
    p_values = dict(zip(tests, holm(list(tests.values())), strict=True))

    def mark(task: str, name: str, cell: Cell) -> Cell:
        p = p_values.get((task, name))
        if p is None or p > ALPHA or not cell.difference:
            return replace(cell, p_corrected=p)
        return replace(cell, p_corrected=p, outcome="worse" if (cell.difference > 0) == lower[task] else "better")

    return {task: {name: mark(task, name, cell) for name, cell in of.items()} for task, of in cells.items()}


def tasks_to_average(
    cells: Mapping[str, Mapping[str, Cell]], lower: Mapping[str, bool], members: Mapping[str, str]
) -> list[str]:
    """The tasks whose scores have one scale, from 0 to 1 and more is better; of a group among them, the group alone."""
    return [
        task
        for task, of in cells.items()
        if not lower[task] and members.get(task) not in cells and all(0 <= cell.value <= 1 for cell in of.values())
    ]


def scored_pairs(
    metric: str, mine: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]
) -> list[tuple[float, float]]:
    """The scores of both models at the same questions, of those that both have."""
    pairs = ((_number(row, metric), _number(theirs[key], metric)) for key, row in mine.items() if key in theirs)
    return [
        (my_score, their_score) for my_score, their_score in pairs if my_score is not None and their_score is not None
    ]


def mean_difference(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean of the differences of at least two pairs, the first less the second, and its standard error."""
    differences = [my_score - their_score for my_score, their_score in pairs]
    return math.fsum(differences) / len(differences), clustered_error(differences, range(len(differences)))


def _directions(records: Iterable[StepRecord]) -> dict[tuple[str, str], bool]:
    """(task, metric) -> whether more is better, of the scores whose evaluation notes it."""
    notes: dict[tuple[str, str], bool] = {}
    for record in records:
        for row in record.csv_rows(TABLE) if record.has(TABLE) else ():
            if row.get("higher_is_better") in ("True", "False"):
                notes[row["task"], row["metric"]] = row["higher_is_better"] == "True"
    return notes


def _members(records: Iterable[StepRecord], tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a group that it is in, of the groups among the tasks."""
    members: dict[str, str] = {task: task.rpartition("/")[0] for task in tasks if task.rpartition("/")[0] in tasks}
    for record in records:
        groups = read_json(join(record.path, RESULTS)).get("group_subtasks") if record.has(RESULTS) else None
        for group, of in (groups or {}).items():
            members |= {task: group for task in of if group in tasks and task != group}
    return members


def _number(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return float(value) if isinstance(value, int | float) else None


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


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model at one task."""

    value: float
    error: float | None = None
    difference: float | None = None
    """From the baseline."""
    tested: Difference | None = None
    """The difference with its error; None without errors."""
    p_corrected: float | None = None
    """The p-value of the difference, after Holm's correction."""
    outcome: str = ""
    """"better" or "worse" than the baseline by more than noise."""
    view: str = ""
    """The questions behind it, beside those of the baseline: an address or a command. Empty without answers."""


def is_lower_better(metric: str) -> bool:
    return LOWER_IS_BETTER.search(metric) is not None


def _difference_rows(metrics: Mapping[str, str], cells: Mapping[str, Mapping[str, Cell]]) -> Iterable[dict[str, Any]]:
    for task, of in cells.items():
        for name, cell in of.items():
            if (tested := cell.tested) is not None:
                row = {"model": name, "task": task, "metric": metrics[task], "difference": tested.value}
                row |= {"error": tested.error, "p": tested.p, "p_holm": cell.p_corrected, "outcome": cell.outcome}
                row |= {"questions": tested.questions, "passages": tested.passages, "smallest": tested.smallest}
                yield {**row, "questions_for_0.01": tested.questions_for(POINT)}


def table_page(
    title: str,
    baseline: str,
    models: Sequence[str],
    metrics: Mapping[str, str],
    lower: Mapping[str, bool],
    cells: Mapping[str, Mapping[str, Cell]],
    macro: Mapping[str, float],
    averaged: Sequence[str],
) -> bytes:
    """Return the page. `metrics`, `lower` and `cells` by task; `macro` is the mean over the tasks in `averaged`."""
    every = [cell for row in cells.values() for cell in row.values()]
    compared, marked = sum(cell.tested is not None for cell in every), sum(bool(cell.outcome) for cell in every)
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in models)
    rows = [_row(task, metrics[task], models, cells[task], lower[task]) for task in cells]
    return "".join(
        [
            HEAD.format(title=escape(title)),
            f"<h1>{escape(title)}</h1>",
            f'<p class="muted">Baseline: {escape(baseline)}. Green is better than it, red is worse, by more than '
            f"noise: {marked} of {compared} differences. If no model differed from it, a page like this would mark any "
            f"with a probability of {ALPHA:.0%}: the p-values have Holm's correction for all {compared} differences. ± "
            "is half of a score's own 95% confidence interval. A cell's title has the difference with its interval, "
            f"and the p-values.{about_views([cell.view for cell in every])}</p>",
            f'<table><thead><tr><th class="task">task, metric</th>{head}</tr></thead>',
            f"<tbody>{_mean(models, macro, len(averaged))}{''.join(rows)}</tbody></table>",
            _power(metrics, cells),
            "</body></html>\n",
        ]
    ).encode()


def _mean(models: Sequence[str], macro: Mapping[str, float], tasks: int) -> str:
    if not macro:
        return ""
    values = "".join(f"<td>{macro[name]:.3f}</td>" for name in models)
    about = "all models have them, from 0 to 1, more is better; a group counts once"
    return f'<tr class="mean"><th class="task" title="{about}">mean of {tasks} tasks</th>{values}</tr>'


def _row(task: str, metric: str, models: Sequence[str], row: Mapping[str, Cell], lower: bool) -> str:
    best = (min if lower else max)(cell.value for cell in row.values())
    cells = "".join(_cell(row.get(name), best) for name in models)
    arrow = " ↓" if lower else ""
    return f'<tr><th class="task">{escape(task)} <small>{escape(metric)}{arrow}</small></th>{cells}</tr>'


def _power(metrics: Mapping[str, str], cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """A table of what the questions of each task can show, by the noisiest of its differences; empty without any."""
    rows = []
    for task, of in cells.items():
        tests = [cell.tested for cell in of.values() if cell.tested is not None and cell.tested.questions is not None]
        if tests:
            noisiest = max(tests, key=lambda tested: tested.error)
            count, passages = noisiest.questions, noisiest.passages
            shown = f"{count:,}" if count == passages else f"{count:,} of {passages:,} passages"
            needed = noisiest.questions_for(POINT)
            rows.append(
                f'<tr><th class="task">{escape(task)} <small>{escape(metrics[task])}</small></th><td>{shown}</td>'
                f"<td>{noisiest.smallest:.3f}</td><td>{'–' if needed is None else f'{needed:,}'}</td></tr>"
            )
    if not rows:
        return ""
    return (
        '<h2>Differences that the questions can show</h2><p class="muted">With a probability of 80%, in a single test '
        "with p = 0.05, by the differences of these models. A real difference that is smaller is seldom seen.</p>"
        '<table><thead><tr><th class="task">task, metric</th><th>questions</th><th>smallest difference</th>'
        f"<th>questions for {POINT}</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(cell: Cell | None, best: float) -> str:
    if cell is None:
        return '<td title="not evaluated">–</td>'
    value = f"<b>{cell.value:.3f}</b>" if cell.value == best else f"{cell.value:.3f}"
    error = "" if cell.error is None else f" <small>±{1.96 * cell.error:.3f}</small>"
    kind = f" class={cell.outcome}" if cell.outcome else ""
    return f"<td{kind}{title_with(_difference(cell), cell.view)}>{linked(value, cell.view)}{error}</td>"


def _difference(cell: Cell) -> str:
    if cell.difference is None:
        return ""
    if cell.tested is None:
        return f"{cell.difference:+.4f} from the baseline, without an error"
    noise, p = f"± {Z95 * cell.tested.error:.4f}", f"p = {cell.tested.p:.2g}, {cell.p_corrected:.2g} after Holm"
    return f"{cell.difference:+.4f} {noise} from the baseline, {p}"
