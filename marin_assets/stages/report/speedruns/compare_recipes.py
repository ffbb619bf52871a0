"""Compare recipes, such as optimizers, over several sizes: the loss by training FLOPs, a line a recipe, with errors.

In:  the outputs of trainings by recipe, in any number of sizes and seeds (`speedrun.py` has what is read of each).
Out: `recipes.html`: the plot, a table, with a baseline the compute that each recipe saves, and forecasts;
     `recipes.jsonl`, a row for each recipe and size: recipe, flops, parameters, runs, mean, half_width (of the 95 %
     interval of the mean; null of a single run), values.

Runs of a recipe are seeds of one size if they have as many parameters, and the same FLOPs to 1 %.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.report.records import ReportError, read_records
from marin_assets.stages.report.speedruns.board import check_comparison
from marin_assets.stages.report.speedruns.entry import Entry
from marin_assets.stages.report.speedruns.groups import Group, by_label, grouped
from marin_assets.stages.report.speedruns.page import render_page, scaling_sections
from marin_assets.stages.report.speedruns.speedrun import measure
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

PAGE, ROWS = "recipes.html", "recipes.jsonl"


@dataclass(frozen=True, kw_only=True)
class CompareRecipesConfig:
    recipes: dict[str, list[str]]
    """Recipe -> outputs of its trainings."""
    output_path: str = THIS_OUTPUT_PATH
    metric: str = versioned("loss_end")
    """A number of the results, or a metric that the trainings log, whose last value counts: "eval/bpb"."""
    goal: str = versioned("min")
    """"min" or "max"."""
    baseline: str | None = versioned(None)
    """The recipe that others are compared with; needs `floor`, and three sizes."""
    floor: float | None = versioned(None)
    """The loss of this metric that no compute goes below. None fits it, for forecasts alone."""
    forecast_flops: float | None = versioned(None)
    """Training FLOPs of the forecasts; None makes none."""
    title: str = versioned("Recipes by size")

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def compare_recipes(config: CompareRecipesConfig) -> dict[str, Any]:
    """Compare the recipes.

    Returns recipes, runs, sizes (recipe -> number of sizes), not_finite (runs whose metric is none: they are left out),
    single_runs (sizes with one run), best (of the most FLOPs: recipe, and its mean), and page. Raises ReportError for a
    mistake in the config, an unknown metric, and if no run has a finite value.
    """
    _check(config)
    entries: list[tuple[str, Entry]] = []
    diverged: list[tuple[str, Entry]] = []
    for label, paths in config.recipes.items():
        for name, training in read_records({str(number): path for number, path in enumerate(paths)}).items():
            info = {**measure(training, config.metric, config.goal), "label": label}
            entry = Entry(name=f"{label}/{name}", info=info)
            value = info.get(config.metric)
            (entries if value is not None and math.isfinite(value) else diverged).append((training.name, entry))
    if not entries:
        raise ReportError(f"None of the {len(diverged)} runs has a finite {config.metric!r}. Look at their logs.")
    groups = grouped(entry for _, entry in entries)
    labels = by_label(groups)
    scaling = scaling_sections(
        groups,
        config.metric,
        config.goal,
        baseline=config.baseline,
        floor=config.floor,
        forecast_flops=config.forecast_flops,
    )
    left_out = [f"{name}, of {entry.label}: its {config.metric} is not finite." for name, entry in diverged]
    facts = [
        (f"{len(labels):,}", "recipes"),
        (f"{len(entries):,}", "runs"),
        (f"{len(groups):,}", "sizes of recipes"),
    ]
    page = render_page(config.title, config.metric, config.goal, scaling, facts=facts, left_out=left_out)
    write_bytes(join(config.output_path, PAGE), page)
    rows = b"".join(json.dumps(_row(group)).encode() + b"\n" for group in groups)
    write_bytes(join(config.output_path, ROWS), rows)
    best = _best(groups, config.goal)
    return {
        "recipes": len(labels),
        "runs": len(entries),
        "sizes": {label: len(of) for label, of in labels.items()},
        "not_finite": len(diverged),
        "single_runs": sum(len(group.entries) == 1 for group in groups),
        "best": {"recipe": best.label, "mean": best.mean},
        "page": PAGE,
    }


def _best(groups: list[Group], goal: str) -> Group:
    return min(groups, key=lambda group: group.mean if goal == "min" else -group.mean)


def _row(group: Group) -> dict[str, Any]:
    return {
        "recipe": group.label,
        "flops": group.flops,
        "parameters": group.entries[0].model_size,
        "runs": len(group.entries),
        "mean": group.mean,
        "half_width": group.half_width,
        "values": group.values,
    }


def _check(config: CompareRecipesConfig) -> None:
    if not config.recipes or not all(config.recipes.values()):
        raise ReportError("A comparison of recipes has a recipe without trainings, expected {recipe: [training, …]}.")
    for recipe, paths in config.recipes.items():
        if len(set(paths)) < len(paths):
            raise ReportError(
                f"The recipe {recipe!r} has a training twice, expected each once: it is one seed, not two."
            )
    check_comparison(config.goal, config.baseline, config.floor, config.forecast_flops)
    if config.baseline is not None and config.baseline not in config.recipes:
        raise ReportError(f"The baseline is {config.baseline!r}, {expected_one_of(config.baseline, config.recipes)}")
