"""Write the table of runs of trainings, for `fit_scaling_law`, with the budgets that have no inner minimum.

In:  outputs of trainings by label, and the budget of each if they are of an isoflop sweep.
Out: `runs.csv`, a row for each training: `run_row.py`, and `budget`;
     `runs.html`, a page with the runs by budget.

A training that was killed and resumed has the row of one that was not: its tokens and FLOPs count each step once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from marin_assets.stages.report.report import template
from marin_assets.stages.report.scaling_runs.rows_csv import rows_csv
from marin_assets.stages.report.scaling_runs.run_row import ModelParts, check_counting, run_rows
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

KINDS = ("csv", "html")

TABLE, PAGE = "runs.csv", "runs.html"
FLOPS_APART = 0.1
"""Share of a budget by which counted FLOPs may differ: rounding to whole batches is at most half of it."""
LEAST_SIZES = 3
"""Sizes of a budget: with fewer none is between others."""


@dataclass(frozen=True, kw_only=True)
class TabulateRunsConfig:
    runs: dict[str, str]
    """Label -> output path of a training."""
    models: dict[str, ModelParts] = field(default_factory=lambda: versioned({}))
    """Label -> parts of its model."""
    output_path: str = THIS_OUTPUT_PATH
    budgets: dict[str, float] = field(default_factory=lambda: versioned({}))
    """Label -> training FLOPs that were planned."""
    loss: str = versioned("loss_end")
    """The loss: a number of the result, or a metric of `metrics.jsonl`, "eval/prose/loss", whose last value counts."""
    params: str = versioned("with_head")
    """The way to count params, one of `run_row.COUNTS`."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, lambda config: check_counting(config.params, config.models, config.runs), name)


def tabulate_runs(config: TabulateRunsConfig) -> dict[str, Any]:
    """Write the table.

    Returns runs, budgets (a row each: flops, runs, best, params, loss, edge, next_params), without_minimum (how many
    of them have none), doubts (sentences) and report. Raises ReportError for a training that is not finished.
    """
    check_counting(config.params, config.models, config.runs)
    rows = run_rows(config.runs, config.models, config.loss, config.params)
    rows = [{**row, "budget": config.budgets.get(row["label"])} for row in rows]
    budgets = [_budget(flops, _of_budget(rows, flops)) for flops in sorted(set(config.budgets.values()))]
    doubts = [*_counted_otherwise(rows), *(sentence for budget in budgets if (sentence := _no_minimum(budget)))]
    write_bytes(join(config.output_path, TABLE), rows_csv(rows))
    page = template("table.html.j2", Path(__file__).parent).render(
        title="Runs", rows=rows, budgets=budgets, doubts=doubts, loss=config.loss, params=config.params
    )
    write_bytes(join(config.output_path, PAGE), page.encode())
    return {
        "runs": len(rows),
        "budgets": budgets,
        "without_minimum": sum(budget["edge"] != "" for budget in budgets),
        "doubts": [{"warning": doubt} for doubt in doubts],
        "report": PAGE,
    }


def _of_budget(rows: Sequence[Mapping[str, Any]], flops: float) -> list[Mapping[str, Any]]:
    return sorted((row for row in rows if row["budget"] == flops), key=lambda row: row["params"])


def _budget(flops: float, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The best run of a budget, whether it is at an edge of the sizes, and the params of a size beyond that edge."""
    best = min(range(len(rows)), key=lambda number: rows[number]["loss"])
    edge = "" if 0 < best < len(rows) - 1 else "smallest" if best == 0 else "largest"
    ratios = [larger["params"] / smaller["params"] for smaller, larger in pairwise(rows)]
    params = rows[best]["params"]
    step = ratios[0 if best == 0 else -1] if ratios else 2.0
    beyond = {"": None, "smallest": round(params / step), "largest": round(params * step)}
    return {
        "flops": flops,
        "runs": len(rows),
        "best": rows[best]["label"],
        "params": params,
        "loss": rows[best]["loss"],
        "edge": edge,
        "next_params": beyond[edge],
    }


def _no_minimum(budget: Mapping[str, Any]) -> str:
    if not budget["edge"]:
        return ""
    few = f" It has {budget['runs']}, and {LEAST_SIZES} are the least." if budget["runs"] < LEAST_SIZES else ""
    return (
        f"The budget {budget['flops']:.3g} has no inner minimum: its best run is the {budget['edge']} one, "
        f"{budget['best']!r} with {budget['params']:,} params. Add a size of about {budget['next_params']:,}.{few}"
    )


def _counted_otherwise(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    apart = [row for row in rows if row["budget"] and abs(row["flops"] / row["budget"] - 1) > FLOPS_APART]
    if not apart:
        return []
    first = apart[0]
    return [
        f"{len(apart)} runs have other FLOPs than their budget, such as {first['label']!r} with {first['flops']:.3g} "
        f"in place of {first['budget']:.3g}. The sweep was planned with another vocab_size than the tokenizer's."
    ]
