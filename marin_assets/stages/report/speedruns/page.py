"""The pages of speedruns and of recipes, from one template: self-contained HTML without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marin_assets.stages.report.report import template
from marin_assets.stages.report.speedruns.chart import draw_recipes, legend_of
from marin_assets.stages.report.speedruns.groups import Group, by_label
from marin_assets.stages.report.speedruns.power_law import PowerLawError
from marin_assets.stages.report.speedruns.tables import baseline_of, forecast_rows, group_rows, speedup_rows

SECTIONS: Mapping[str, Any] = {"facts": (), "front_chart": "", "tracks": (), "rows": (), "left_out": ()}
"""Sections that a page lacks unless they are given."""


def render_page(title: str, metric: str, goal: str, scaling: Mapping[str, Any], **sections: Any) -> bytes:
    """The page. `scaling` is that of `scaling_sections`, `sections` are those of SECTIONS."""
    page = template("board.html.j2", Path(__file__).parent)
    html = page.render(title=title, metric=metric, goal=goal, **{**SECTIONS, **sections}, **scaling)
    return html.encode("utf-8", "backslashreplace")


def scaling_sections(
    groups: Sequence[Group],
    metric: str,
    goal: str,
    *,
    baseline: str | None,
    floor: float | None,
    forecast_flops: float | None,
) -> dict[str, Any]:
    """The part of a page about recipes by size: the plot, the compute saved against a baseline, forecasts. `groups` are
    those to draw. A law is of losses: with the goal "max" none is fitted."""
    from markupsafe import Markup

    labels = by_label(groups)
    is_loss = goal == "min"
    sections: dict[str, Any] = {
        "scaling_chart": Markup(draw_recipes(labels, metric)) if groups else "",
        "legend": [(label, colour, Markup(point)) for label, colour, point in legend_of(labels)],
        "group_table": group_rows(groups),
        "speedups": [],
        "no_speedups": "",
        "baseline": baseline,
        "floor": "" if floor is None else f"{floor:g}",
        "forecasts": [],
        "forecast_flops": "" if forecast_flops is None else f"{forecast_flops:.3g}".replace("e+", "e"),
    }
    if forecast_flops is not None and is_loss:
        sections["forecasts"] = forecast_rows(labels, forecast_flops, floor)
    if baseline is not None and floor is not None and is_loss:
        try:
            line = baseline_of(labels.get(baseline, ()), floor)
        except PowerLawError as error:
            return {**sections, "no_speedups": str(error)}
        sections["speedups"] = speedup_rows(groups, line, baseline)
        sections |= {"alpha": f"{line.alpha:.4f}", "baseline_points": line.points}
    return sections
