"""Compare models by their scores: tasks by models in one table, with errors; what is more than noise is marked.

In:  the outputs of evaluations (evaluate_with_lm_eval), by model.
Out: `comparison.html`, the table as one page; `scores.jsonl`, a row for each model, task and metric.

A difference from the baseline is more than noise if its 95% confidence interval is on one side of 0. Where both models
answered the same questions (`samples.jsonl`), the interval is that of the paired differences, which is narrower;
otherwise it is that of independent scores. With many tasks, one in twenty is marked by chance alone: the page notes it.

Tasks are rows and models columns, so that 50 tasks by 20 models stay readable: the first column and the head stay where
they are, values have three digits, errors are small. A cell is coloured where it differs from the baseline by more than
noise; the best of a row is bold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_assets.stages.report.views import about_views, linked, title_with, view_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

PAGE, SCORES, SAMPLES = "comparison.html", "scores.jsonl", "samples.jsonl"
Z95 = 1.96
HEADLINES = ("acc_mutual_info", "acc_norm", "acc", "exact_match", "f1", "bits_per_byte", "byte_perplexity")
"""Metrics of a task without a named one: the first of these that it has; else its first metric with an error."""


LOWER_IS_BETTER = ("bits_per_byte", "perplexity", "loss")
"""Parts of the names of metrics."""

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
    (by model: the mean over the tasks that all models have) and page. Raises ReportError for fewer than two models, an
    unknown baseline or metric, or models without a task in common.
    """
    _check(config)
    baseline = next(iter(config.models)) if config.baseline is None else config.baseline
    records = read_records(config.models)
    scores = {name: dict(records[name].result.get("scores") or {}) for name in config.models}
    tasks = list(dict.fromkeys(task for of in scores.values() for task in of))
    metrics = {task: metric_of(task, scores, config.metrics) for task in tasks}
    samples: dict[str, dict[str, dict[Any, dict[str, Any]]]] = {}
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
    for task, of in cells.items():
        comparable = [name for name in of if task in answered[name] and not is_lower_better(metrics[task])]
        for name in comparable if baseline in comparable and len(comparable) > 1 else ():
            beside = [other for other in comparable if other != baseline] if name == baseline else [name]
            viewed = [records[other] for other in (baseline, *beside)]
            of[name] = replace(of[name], view=view_of(config.browser, viewed, task, metrics[task]))
    shared = [task for task in tasks if len(cells[task]) == len(config.models)]
    if not shared:
        raise ReportError(
            f"The models {', '.join(map(repr, config.models))} have no task in common. Evaluate them on the same tasks."
        )
    macro = {name: math.fsum(cells[task][name].value for task in shared) / len(shared) for name in config.models}
    page = table_page(config.title, baseline, list(config.models), metrics, cells, macro)
    write_bytes(join(config.output_path, PAGE), page)
    rows = _rows(scores)
    write_bytes(join(config.output_path, SCORES), "".join(json.dumps(row) + "\n" for row in rows).encode())
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
        "page": PAGE,
    }


def _check(config: CompareModelsConfig) -> None:
    if len(config.models) < 2:
        raise ReportError(f"A comparison has {len(config.models)} models, expected at least two. Pass models={{…}}.")
    baseline = config.baseline
    if baseline is not None and baseline not in config.models:
        raise ReportError(f"The baseline is {baseline!r}, {expected_one_of(baseline, config.models, 'models')}")


def metric_of(task: str, scores: Mapping[str, Mapping[str, Any]], named: Mapping[str, str]) -> str:
    """The metric of a task: the named one, or the first of HEADLINES that a model has."""
    available = next(of[task] for of in scores.values() if task in of)
    if task in named:
        if named[task] not in available:
            raise ReportError(f"The task {task!r} has no metric {named[task]!r}, expected one of {sorted(available)}.")
        return named[task]
    with_errors = [name for name in available if f"{name}_stderr" in available]
    chosen = next((name for name in HEADLINES if name in available), next(iter(with_errors), None))
    if chosen is None:
        raise ReportError(
            f"The task {task!r} has none of the usual metrics: {sorted(available)}. Name one in metrics={{…}}."
        )
    return chosen


def cell_of(
    task: str,
    metric: str,
    name: str,
    baseline: str,
    scores: Mapping[str, Mapping[str, Any]],
    samples: Mapping[str, Mapping[str, Mapping[Any, Mapping[str, Any]]]],
) -> Cell:
    """One model at one task: value, error, and its difference from the baseline with the error of that."""
    mine, theirs = scores[name][task], scores[baseline].get(task, {})
    value, error = float(mine[metric]), mine.get(f"{metric}_stderr")
    if name == baseline or metric not in theirs:
        return Cell(value=value, error=error)
    difference = value - float(theirs[metric])
    paired = paired_error(metric, difference, samples[name].get(task, {}), samples[baseline].get(task, {}))
    other = theirs.get(f"{metric}_stderr")
    noise = paired if paired is not None else None if error is None or other is None else math.hypot(error, other)
    is_more = noise is not None and abs(difference) > Z95 * noise and abs(difference) > 0
    outcome = "" if not is_more else "worse" if (difference > 0) == is_lower_better(metric) else "better"
    return Cell(value=value, error=error, difference=difference, noise=noise, outcome=outcome)


def paired_error(
    metric: str, difference: float, mine: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]
) -> float | None:
    """The standard error of the mean difference over the same questions; None if they are not the same, or one.

    `difference` is that of the scores: rows with another mean do not show its error, and None is returned.
    """
    if len(mine) < 2 or mine.keys() != theirs.keys():
        return None
    pairs = scored_pairs(metric, mine, theirs)
    if len(pairs) < len(mine):
        return None
    mean, error = mean_difference(pairs)
    return error if math.isclose(mean, difference, rel_tol=1e-6, abs_tol=1e-9) else None


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
    mean = math.fsum(differences) / len(differences)
    squares = math.fsum((difference - mean) ** 2 for difference in differences)
    return mean, math.sqrt(squares / (len(differences) - 1) / len(differences))


def _number(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return float(value) if isinstance(value, int | float) else None


def _samples(record: StepRecord) -> tuple[dict[str, dict[Any, dict[str, Any]]], set[str]]:
    """Task -> id of the question -> the numbers of the answer; its texts would fill the memory. And the tasks whose
    rows have the texts of questions."""
    by_task: dict[str, dict[Any, dict[str, Any]]] = {}
    answered: set[str] = set()
    for row in record.rows(SAMPLES) if record.has(SAMPLES) else ():
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        by_task.setdefault(row["task"], {})[row["doc_id"]] = numbers
        if "context" in row:
            answered.add(row["task"])
    return by_task, answered


def _rows(scores: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterable[dict[str, Any]]:
    """The normalized table: model, task, metric, value, error, instances."""
    for model, of in scores.items():
        for task, task_scores in of.items():
            for metric, value in task_scores.items():
                if metric == "instances" or metric.endswith(("_stderr", "_lower95", "_upper95")):
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
    noise: float | None = None
    """The standard error of the difference."""
    outcome: str = ""
    """"better" or "worse" than the baseline by more than noise."""
    view: str = ""
    """The questions behind it, beside those of the baseline: an address or a command. Empty without answers."""


def is_lower_better(metric: str) -> bool:
    return any(part in metric for part in LOWER_IS_BETTER)


def table_page(
    title: str,
    baseline: str,
    models: Sequence[str],
    metrics: Mapping[str, str],
    cells: Mapping[str, Mapping[str, Cell]],
    macro: Mapping[str, float],
) -> bytes:
    """Return the page. `metrics` and `cells` by task; `macro` is the mean over the tasks that all models have."""
    compared = sum(cell.difference is not None for row in cells.values() for cell in row.values())
    marked = sum(bool(cell.outcome) for row in cells.values() for cell in row.values())
    views = [cell.view for row in cells.values() for cell in row.values()]
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in models)
    rows = [_mean(models, macro), *(_row(task, metrics[task], models, cells[task]) for task in cells)]
    return "".join(
        [
            HEAD.format(title=escape(title)),
            f"<h1>{escape(title)}</h1>",
            f'<p class="muted">Baseline: {escape(baseline)}. Green is better than it, red is worse, by more than noise '
            f"(the 95% confidence interval of the difference is on one side of 0): {marked} of {compared} differences. "
            f"About {0.05 * compared:.0f} would be marked if no model differed from it. ± is half of a score's own 95% "
            f"confidence interval. A cell's title has the difference.{about_views(views)}</p>",
            f'<table><thead><tr><th class="task">task, metric</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>',
            "</table></body></html>\n",
        ]
    ).encode()


def _mean(models: Sequence[str], macro: Mapping[str, float]) -> str:
    values = "".join(f"<td>{macro[name]:.3f}</td>" for name in models)
    return f'<tr class="mean"><th class="task">mean of the tasks of all models</th>{values}</tr>'


def _row(task: str, metric: str, models: Sequence[str], row: Mapping[str, Cell]) -> str:
    best = (min if is_lower_better(metric) else max)(cell.value for cell in row.values())
    cells = "".join(_cell(row.get(name), best) for name in models)
    return f'<tr><th class="task">{escape(task)} <small>{escape(metric)}</small></th>{cells}</tr>'


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
    noise = "" if cell.noise is None else f" ± {1.96 * cell.noise:.4f}"
    return f"{cell.difference:+.4f}{noise} from the baseline"
