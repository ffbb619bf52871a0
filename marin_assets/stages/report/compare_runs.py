"""Compare runs that differ in what was varied, and keep the best one: of a sweep, of an ablation.

In:  the outputs of the runs, each with a label: their records (`.executor_info`) and metrics (`metrics.jsonl`).
Out: `comparison.json`, the measured values of each run, the best first; `plots/comparison.png`; `plots/curves.png`, if
     the metrics are logged by step; and copies of the files of the best run that `keep` names, at the same places:
     `hf/` of a training, so the output is a model too.

One panel for each metric. With one or more values that were varied, the first is the axis, and the runs that have the
other values in common are a line; without, or where the first is no number, each run is a bar. The best run is marked.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.report.records import UNAVERAGED, ReportError, StepRecord, flat_numbers, read_records
from marin_assets.stages.report.run_curves import METRICS, plot_curves, write_plot
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import open_atomic, open_to_read, stored_files, write_json
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("json",)

COMPARISON, PLOT, CURVES = "comparison.json", "plots/comparison.png", "plots/curves.png"
GOALS = ("min", "max")
LOSS_END = "loss_end"
NEAR = 12
"""Names of metrics that the sentence about an unknown one has at most."""

log = logging.getLogger(__name__)


PANEL_HEIGHT = 3.2
SPREAD_OF_A_LOG_AXIS = 8.0
"""Largest by smallest value, from which the axis is logarithmic."""
MOST_IN_THE_LEGEND = 12


@dataclass(frozen=True, kw_only=True)
class CompareRunsConfig:
    runs: dict[str, str]
    """Label -> output path of the run."""
    output_path: str = THIS_OUTPUT_PATH
    metric: str = versioned("loss_end")
    """The metric that decides: a number of the result, "loss_end" or "scores.arc.acc", or else a metric of
    `metrics.jsonl`, whose last value counts, "eval/prose/loss". Of a run whose exported model is an average of the
    weights, it is that of the average."""
    goal: str = versioned("min")
    """"min" or "max"."""
    further: tuple[str, ...] = versioned(())
    """Further metrics to list and to plot."""
    varied: dict[str, dict[str, Any]] = field(default_factory=lambda: versioned({}))
    """Label -> the varied settings of the run: {"learning_rate": 0.003, "width": 64}. The first of them is the plot's
    axis, and each value of the others has a line."""
    keep: tuple[str, ...] = versioned(("hf",))
    """Files and folders of the best run to copy."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def compare_runs(config: CompareRunsConfig) -> dict[str, Any]:
    """Rank the runs, and copy what is kept of the best.

    Returns runs, best (label), best_run (its path), value, worst, values (label -> metric -> value, the best first),
    not_finite (runs whose value is none: they come last), kept_files and plots. Raises ReportError for an unknown goal
    or metric, for runs of which none has a finite value, and for a missing file of the best one.
    """
    _check(config)
    records = read_records(config.runs)
    metrics = list(dict.fromkeys((config.metric, *config.further)))
    values = {label: {name: value_of(records[label], name) for name in metrics} for label in config.runs}
    ranked = sorted(values, key=lambda label: _rank(values[label][config.metric], config.goal))
    finite = [label for label in ranked if math.isfinite(values[label][config.metric])]
    if not finite:
        raise ReportError(
            f"None of the {len(ranked)} runs has a finite {config.metric!r}, so none is the best. Look at their "
            "logs; a lower learning rate often helps."
        )
    best = finite[0]
    log.info("best of %d runs by %s (%s): %s", len(ranked), config.metric, config.goal, best)
    kept = sum(copy_below(records[best].path, name, config.output_path) for name in config.keep)
    table = {label: {name: _plain(value) for name, value in values[label].items()} for label in ranked}
    write_json(join(config.output_path, COMPARISON), [_row(config, label, table[label]) for label in ranked])
    plot_comparison(values, config.varied, metrics, best, join(config.output_path, PLOT))
    has_curves = plot_curves(records, metrics, best, join(config.output_path, CURVES))
    return {
        "runs": len(ranked),
        "best": best,
        "best_run": records[best].path,
        "value": table[best][config.metric],
        "worst": table[finite[-1]][config.metric],
        "values": table,
        "not_finite": len(ranked) - len(finite),
        "kept_files": kept,
        "plots": [PLOT, CURVES] if has_curves else [PLOT],
    }


def _check(config: CompareRunsConfig) -> None:
    if config.goal not in GOALS:
        raise ReportError(f"goal is {config.goal!r}, {expected_one_of(config.goal, GOALS)}")
    for label in config.varied:
        if label not in config.runs:
            raise ReportError(f"varied names {label!r}, {expected_one_of(label, sorted(config.runs), 'runs')}")


def value_of(run: StepRecord, metric: str) -> float:
    """The number of the result at that place, or the last value of that metric. Raises ReportError without either."""
    if metric == LOSS_END and run.is_averaged and UNAVERAGED not in run.result:
        metric = "eval/loss"  # an earlier release recorded that of the weights, and exported their average
    number = run.value(f"result.{metric}")
    if isinstance(number, int | float) and not isinstance(number, bool):
        return float(number)
    rows = list(run.rows(METRICS)) if run.has(METRICS) else []
    name = run.exported_metric(metric)
    logged = [row[name] for row in rows if name in row]
    if logged:
        return float(logged[-1])
    if number is None and _has(run.result, metric):
        return math.nan  # a loss that was not finite
    names = sorted({*flat_numbers(run.result, ""), *(f".{name}" for row in rows[-50:] for name in row)})
    shown = ", ".join(name.removeprefix(".") for name in names[:NEAR]) or "none"
    raise ReportError(
        f"The run {run.label!r} at {run.path!r} has no metric {metric!r}. It has {len(names)}, among them {shown}. "
        "Name one of them."
    )


def copy_below(path: str, name: str, target: str) -> int:
    """Copy the file or the files below the folder `name`, and return how many."""
    try:
        files = stored_files(join(path, name))
    except FileNotFoundError as error:
        raise ReportError(f"The best run at {path!r} has no {name!r} to keep. Leave it out of keep.") from error
    root = path.rstrip("/") + "/"
    for file in files:
        with open_to_read(file.path) as source, open_atomic(join(target, file.path.removeprefix(root))) as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    return len(files)


def _rank(value: float, goal: str) -> tuple[bool, float]:
    return (True, 0.0) if not math.isfinite(value) else (False, value if goal == "min" else -value)


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _has(result: Mapping[str, Any], dotted: str) -> bool:
    *parents, last = dotted.split(".")
    value: Any = result
    for part in parents:
        value = value.get(part) if isinstance(value, Mapping) else None
    return isinstance(value, Mapping) and last in value


def _row(config: CompareRunsConfig, label: str, values: Mapping[str, float | None]) -> dict[str, Any]:
    return {"run": label, "path": config.runs[label], "varied": config.varied.get(label, {}), **values}


def plot_comparison(
    values: Mapping[str, Mapping[str, float]],
    varied: Mapping[str, Mapping[str, Any]],
    metrics: Sequence[str],
    best: str,
    path: str,
) -> None:
    """Write the PNG, atomically. `values`: run -> metric -> value. A value that is not finite has no point."""
    from matplotlib.figure import Figure  # 0.4 s to import

    axis = _axis_of(values, varied)
    height = PANEL_HEIGHT if axis else max(PANEL_HEIGHT / 2, 0.35 * len(values) + 0.9)
    figure = Figure(figsize=(7, height * len(metrics)), layout="constrained")
    for panel, metric in zip(figure.subplots(len(metrics), 1, squeeze=False)[:, 0], metrics, strict=True):
        points = {label: row[metric] for label, row in values.items() if math.isfinite(row[metric])}
        if axis:
            _draw_lines(panel, axis, points, varied, best)
            panel.set(xlabel=axis, ylabel=metric)
        else:
            _draw_bars(panel, points, best)
            panel.set(xlabel=metric)
        panel.grid(alpha=0.3)
    write_plot(figure, path)


def _axis_of(values: Mapping[str, Any], varied: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The first thing that was varied, if every run has a number of it."""
    first = next((name for label in values for name in varied.get(label, {})), None)
    numbers = [varied.get(label, {}).get(first) for label in values] if first is not None else []
    is_number = [isinstance(number, int | float) and not isinstance(number, bool) for number in numbers]
    return first if first is not None and all(is_number) and len(set(numbers)) > 1 else None


def _draw_lines(
    panel: Any, axis: str, points: Mapping[str, float], varied: Mapping[str, Mapping[str, Any]], best: str
) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for label, value in points.items():
        others = ", ".join(f"{name} {given}" for name, given in varied[label].items() if name != axis)
        lines.setdefault(others, []).append((varied[label][axis], value))
    for name, line in lines.items():
        panel.plot(*zip(*sorted(line), strict=True), marker="o", markersize=4, linewidth=1, label=name)
    if best in points:
        panel.plot(varied[best][axis], points[best], marker="*", markersize=13, color="black", linestyle="none")
    places = [given[axis] for given in varied.values() if axis in given]
    if min(places) > 0 and max(places) / min(places) >= SPREAD_OF_A_LOG_AXIS:
        panel.set_xscale("log")
    if 1 < len(lines) <= MOST_IN_THE_LEGEND:
        panel.legend(fontsize="small")


def _draw_bars(panel: Any, points: Mapping[str, float], best: str) -> None:
    labels = list(points)[::-1]
    colours = ["tab:blue" if label == best else "0.7" for label in labels]
    panel.barh(labels, [points[label] for label in labels], color=colours)
    for place, label in enumerate(labels):
        panel.annotate(f" {points[label]:.4g}", (points[label], place), va="center", fontsize="small")
    panel.margins(x=0.15)
