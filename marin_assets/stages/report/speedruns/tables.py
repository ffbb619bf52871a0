"""The rows of the pages of speedruns: texts, as people read them. The templates escape them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marin_assets.stages.report.speedruns.entry import Entry
from marin_assets.stages.report.speedruns.groups import Finish, Group, is_significant, p_better, track_of, why_not
from marin_assets.stages.report.speedruns.power_law import (
    LEAST_POINTS,
    Baseline,
    PowerLawError,
    fit_baseline,
    forecast,
    speedup_of,
)
from marin_resources.types.durations import readable_duration

UNKNOWN = "–"
MOST_OF_A_TRACK = 10
"""Rows of a track: those with the fewest FLOPs, and all that a test shows."""
SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def entry_row(entry: Entry, front: Sequence[Entry], hardware_front: Sequence[Entry]) -> dict[str, Any]:
    """A row of the table of all entries."""
    notes = entry.info.get("notes") or []
    return {
        "name": entry.name,
        "also": entry.also,
        "author": entry.author,
        "description": str(entry.info.get("description") or ""),
        "value": f"{entry.value:.5g}",
        "size": short(entry.model_size),
        "tokens": short(entry.tokens),
        "flops": flops(entry.model_flops),
        "hardware": flops(entry.hardware_flops),
        "time": UNKNOWN if entry.time_s is None else readable_duration(entry.time_s),
        "mfu": UNKNOWN if entry.mfu is None else f"{entry.mfu:.1%}",
        "date": UNKNOWN if entry.completed is None else f"{entry.completed:%Y-%m-%d}",
        "fronts": [name for name, on in (("model", front), ("hardware", hardware_front)) if entry in on],
        "notes": notes,
    }


def finish_row(rank: int, finish: Finish) -> dict[str, Any]:
    """A row of a track."""
    group = finish.group
    return {
        "rank": rank,
        "name": group.name,
        "runs": len(group.entries),
        "value": mean_of(group),
        "flops": flops(group.flops),
        "hardware": flops(_mean(entry.hardware_flops for entry in group.entries)),
        "time": _duration(_mean(entry.time_s for entry in group.entries)),
        "verdict": finish.verdict,
        "is_shown": finish.verdict in ("first", "faster"),
        "p": "" if finish.p is None else f"{finish.p:.2g}",
    }


def track_tables(groups: Sequence[Group], targets: Mapping[str, float]) -> list[dict[str, Any]]:
    """The tables of the tracks."""
    tables = []
    for name, target in targets.items():
        rows = [finish_row(rank, finish) for rank, finish in enumerate(track_of(groups, target), 1)]
        shown = [row for row in rows if row["rank"] <= MOST_OF_A_TRACK or row["is_shown"]]
        tables.append({"name": name, "target": f"{target:g}", "rows": shown, "more": len(rows) - len(shown)})
    return tables


def group_rows(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """The rows of a table of recipes by size."""
    return [
        {
            "label": group.label,
            "runs": "single run" if len(group.entries) == 1 else f"{len(group.entries)} runs",
            "value": mean_of(group),
            "size": short(group.entries[0].model_size),
            "flops": flops(group.flops),
        }
        for group in groups
    ]


def forecast_rows(labels: Mapping[str, Sequence[Group]], at: float, floor: float | None) -> list[dict[str, Any]]:
    """The forecast of each label; of a label with too few sizes, how many it has."""
    rows = []
    for label, groups in labels.items():
        row: dict[str, Any] = {"label": label, "sizes": len(groups), "missing": ""}
        try:
            made = forecast([group.flops for group in groups], [group.mean for group in groups], at, floor)
        except PowerLawError as error:
            few = len(groups) < LEAST_POINTS
            row["missing"] = f"{len(groups)} of {LEAST_POINTS} sizes" if few else str(error)
        else:
            row |= {
                "loss": f"{made.loss:.4g}",
                "range": f"{made.low:.4g} to {made.high:.4g}",
                "law": f"{made.law.a:.4g} C^-{made.law.b:.4f} + {made.law.c:.4g}",
            }
            if made.law.is_at_a_bound:
                row["missing"] = "the points do not determine the exponent"
        rows.append(row)
    return rows


def baseline_of(groups: Sequence[Group], floor: float) -> Baseline:
    """The line of the baseline. Raises PowerLawError."""
    return fit_baseline([group.flops for group in groups], [group.mean for group in groups], floor)


def speedup_rows(groups: Iterable[Group], baseline: Baseline, name: str) -> list[dict[str, Any]]:
    """The effective speedup of each group that is not of the baseline."""
    rows = []
    for group in groups:
        if group.label == name:
            continue
        row = {"label": group.label, "flops": flops(group.flops), "size": short(group.entries[0].model_size)}
        try:
            speedup = speedup_of(group.flops, group.mean, baseline)
        except PowerLawError as error:
            rows.append({**row, "speedup": UNKNOWN, "range": "", "verdict": str(error), "is_faster": False})
            continue
        p = p_better(group.values, baseline.loss(group.flops))
        is_faster = is_significant(group.values, p) and speedup.low > 1
        verdict = "faster" if is_faster else why_not(group.values, p)
        if not is_faster and is_significant(group.values, p):
            verdict = "within the baseline's spread"
        rows.append(
            {
                **row,
                "speedup": f"{speedup.value:.3g}",
                "range": f"{speedup.low:.3g} to {speedup.high:.3g}{'' if speedup.is_within else ', extrapolated'}",
                "verdict": verdict,
                "is_faster": is_faster,
            }
        )
    return rows


def mean_of(group: Group) -> str:
    error = "" if group.half_width is None else f" ± {group.half_width:.2g}"
    return f"{group.mean:.5g}{error}"


def flops(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.3e}".replace("e+", "e")


def short(number: float | None) -> str:
    """ "1.43 B" """
    if number is None:
        return UNKNOWN
    unit = next((pair for pair in SHORT if number >= pair[0]), None)
    return f"{number:,}" if unit is None else f"{number / unit[0]:.3g} {unit[1]}"


def _mean(numbers: Iterable[float | None]) -> float | None:
    known_numbers = list(numbers)
    measured = [number for number in known_numbers if number is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(known_numbers) else None


def _duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else readable_duration(seconds)
