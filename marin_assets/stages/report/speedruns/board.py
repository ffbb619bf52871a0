"""Make the page of many speedruns: their Pareto front, tracks by target, recipes by size.

In:  entries by name: outputs of `write_speedrun`; folders of files `speedrun_results.json`, submitted ones or Marin's,
     and of Marin's `tracker_metrics.jsonl`.
Out: `speedruns.html`; `entries.jsonl`, a row for each run: name, also (further names of the same run), front and
     hardware_front (whether it is on them), and all fields of its entry.

Runs with the same numbers are one, under all of their names. An entry of another metric, and one with a fault, is left
out, and named on the page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.stages.report.compare_runs import GOALS
from marin_assets.stages.report.records import ReportError
from marin_assets.stages.report.speedruns.chart import draw_front
from marin_assets.stages.report.speedruns.entry import RESULTS, Entry, without_equals
from marin_assets.stages.report.speedruns.groups import by_label, front_of, grouped, track_of
from marin_assets.stages.report.speedruns.page import render_page, scaling_sections
from marin_assets.stages.report.speedruns.read import Read, read_entries
from marin_assets.stages.report.speedruns.tables import entry_row, track_tables
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

PAGE, ROWS = "speedruns.html", "entries.jsonl"


@dataclass(frozen=True, kw_only=True)
class SpeedrunBoardConfig:
    entries: dict[str, str] = field(default_factory=dict)
    """Name -> output of `write_speedrun`."""
    folders: dict[str, str] = field(default_factory=dict)
    """Name -> folder of files, at any depth; the name is before those of its entries, unless it is empty. The path of a
    folder that is no step's output is in the version, and not its files."""
    output_path: str = THIS_OUTPUT_PATH
    metric: str = versioned("eval/bpb")
    """Entries of another metric are left out."""
    goal: str = versioned("min")
    """"min" or "max"."""
    targets: dict[str, float] = field(default_factory=lambda: versioned({}))
    """Name of a track -> the value of the metric to reach."""
    baseline: str | None = versioned(None)
    """The label that others are compared with; needs `floor`."""
    floor: float | None = versioned(None)
    """The loss of this metric that no compute goes below: of forecasts and of the effective speedup. None fits it, for
    forecasts alone."""
    forecast_flops: float | None = versioned(None)
    """Training FLOPs of the forecasts; None makes none."""
    title: str = versioned("Speedruns")

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_board, name)


def write_board(config: SpeedrunBoardConfig) -> dict[str, Any]:
    """Write the page.

    Returns runs, equal (names of runs that are listed under another), faulty, other_metric, labels, front and
    hardware_front (names), tracks (by name: reached, and best, which is None without one), and page. Raises
    ReportError for a mistake in the config and if no entry is left, SpeedrunError for a folder without files.
    """
    check_board(config)
    reads = [*_of_steps(config.entries), *_of_folders(config.folders)]
    page, rows, result = board_of(config, reads)
    write_bytes(join(config.output_path, PAGE), page)
    write_bytes(join(config.output_path, ROWS), b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return result


def board_of(
    config: SpeedrunBoardConfig, reads: Sequence[Read]
) -> tuple[bytes, Sequence[Mapping[str, Any]], dict[str, Any]]:
    """The page, the rows and the result. Raises ReportError if no entry is left."""
    right = [read.entry for read in reads if not read.faults]
    chosen = [entry for entry in right if entry.metric == config.metric and entry.goal == config.goal]
    if not chosen:
        raise ReportError(
            f"None of the {len(reads)} entries has the metric {config.metric!r} with the goal {config.goal!r}, "
            f"{expected_one_of(config.metric, sorted({entry.metric for entry in right}), 'metrics')}"
        )
    by_name = sorted(chosen, key=lambda entry: entry.name)
    entries = sorted(without_equals(by_name), key=lambda entry: entry.model_flops)
    groups = grouped(entries)
    labels = by_label(groups)
    if config.baseline is not None and config.baseline not in labels:
        raise ReportError(f"The baseline is {config.baseline!r}, {expected_one_of(config.baseline, labels, 'labels')}")
    front, hardware_front = front_of(entries), front_of(entries, "hardware_flops")
    several = [group for of in labels.values() if len(of) > 1 or of[0].label == config.baseline for group in of]
    scaling = scaling_sections(
        several,
        config.metric,
        config.goal,
        baseline=config.baseline,
        floor=config.floor,
        forecast_flops=config.forecast_flops,
    )
    from markupsafe import Markup

    page = render_page(
        config.title,
        config.metric,
        config.goal,
        scaling,
        facts=_facts(config, entries, labels, front),
        front_chart=Markup(draw_front(entries, front, config.metric)),
        tracks=track_tables(groups, config.targets),
        rows=[entry_row(entry, front, hardware_front) for entry in entries],
        left_out=_left_out(config, reads),
    )
    rows = [
        {
            "name": entry.name,
            "also": entry.also,
            "front": entry in front,
            "hardware_front": entry in hardware_front,
            **entry.info,
        }
        for entry in entries
    ]
    finishes = {name: track_of(groups, target) for name, target in config.targets.items()}
    result = {
        "runs": len(entries),
        "equal": [name for entry in entries for name in entry.also],
        "faulty": sum(bool(read.faults) for read in reads),
        "other_metric": len(right) - len(chosen),
        "labels": len(labels),
        "front": [entry.name for entry in front],
        "hardware_front": [entry.name for entry in hardware_front],
        "tracks": {
            name: {
                "reached": len(of),
                "best": next((finish.group.name for finish in of if finish.verdict in ("first", "faster")), None),
            }
            for name, of in finishes.items()
        },
        "page": PAGE,
    }
    return page, rows, result


def _of_steps(entries: Mapping[str, str]) -> list[Read]:
    reads: list[Read] = []
    for name, path in entries.items():
        reads += [replace(read, name=name) for read in read_entries(join(path, RESULTS))]
    return reads


def _of_folders(folders: Mapping[str, str]) -> list[Read]:
    return [
        replace(read, name="/".join(filter(None, (name, read.name))))
        for name, folder in folders.items()
        for read in read_entries(folder)
    ]


def _facts(
    config: SpeedrunBoardConfig, entries: Sequence[Entry], labels: Mapping[str, Any], front: Sequence[Entry]
) -> list[tuple[str, str]]:
    best = front[-1]
    return [
        (f"{len(entries):,}", "runs"),
        (f"{len(labels):,}", "recipes"),
        (f"{len(front):,}", "on the front"),
        (f"{best.value:.5g}", f"best {config.metric}: {best.name}"),
    ]


def _left_out(config: SpeedrunBoardConfig, reads: Sequence[Read]) -> list[str]:
    sentences = [f"{read.name}: {fault}" for read in reads for fault in read.faults]
    for read in reads:
        if not read.faults and (read.entry.metric, read.entry.goal) != (config.metric, config.goal):
            sentences.append(f"{read.name}: its metric is {read.entry.metric!r}, goal {read.entry.goal!r}.")
    return sentences


def check_board(config: SpeedrunBoardConfig) -> None:
    """Raise ReportError for a mistake in the config."""
    if not config.entries and not config.folders:
        raise ReportError("A board of speedruns has no entries, expected one at least. Pass entries or folders.")
    check_comparison(config.goal, config.baseline, config.floor, config.forecast_flops)
    for name, target in config.targets.items():
        if isinstance(target, bool) or not math.isfinite(target):
            raise ReportError(f"The target of the track {name!r} is {target!r}, expected a finite number.")


def check_comparison(goal: str, baseline: str | None, floor: float | None, forecast_flops: float | None) -> None:
    """Raise ReportError for an unknown goal, a baseline without a floor, and numbers that are none."""
    if goal not in GOALS:
        raise ReportError(f"goal is {goal!r}, {expected_one_of(goal, GOALS)}")
    if baseline is not None and floor is None:
        raise ReportError(
            f"The baseline is {baseline!r} without a floor, expected the loss of this metric that no compute goes "
            "below. Pass floor=1.6, or what it is for the metric."
        )
    if floor is not None and not 0 <= floor < math.inf:
        raise ReportError(f"floor is {floor!r}, expected a finite number of 0 or more.")
    if forecast_flops is not None and not 0 < forecast_flops < math.inf:
        raise ReportError(f"forecast_flops is {forecast_flops!r}, expected a finite number above 0, such as 1e22.")
    if goal == "max" and (baseline is not None or forecast_flops is not None):
        raise ReportError('baseline and forecast_flops are of losses, and goal is "max". Leave them None.')
