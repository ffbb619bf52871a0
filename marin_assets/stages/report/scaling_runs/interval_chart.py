"""Draw a forecast with its intervals, and the result as a point, as SVG without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WIDTH, HEIGHT, MARGIN = 640, 66, 30
MIDDLE = 24


def draw_interval(row: Mapping[str, Any]) -> Any:
    """The picture of a row of `checked.csv`: a thick line for the interval of the law, a thin one for that of a run, a
    bar at the forecast, and a point at the result."""
    from markupsafe import Markup  # with jinja2, late for its weight

    values = [row[name] for name in ("run_low", "run_high", "measured")]
    least, most = min(values), max(values)
    scale = (WIDTH - 2 * MARGIN) / max(most - least, 1e-9)
    x = {name: MARGIN + (row[name] - least) * scale for name in row if isinstance(row[name], float)}
    point = "held" if row["inside"] else "failed"
    labels = "".join(
        f'<text class="tick" x="{x[name]:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{row[name]:.3f}</text>'
        for name in ("run_low", "run_high")
    )
    words = f"forecast {row['forecast']:.4f}, interval {row['run_low']:.4f} to {row['run_high']:.4f}, "
    return Markup(
        f'<svg class="chart" style="min-width:0" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{words}result {row["measured"]:.4f}">'
        f'<path class="interval" d="M{x["run_low"]:.1f} {MIDDLE}H{x["run_high"]:.1f}"/>'
        f'<path class="curve train" style="stroke-width:7" d="M{x["low"]:.1f} {MIDDLE}H{x["high"]:.1f}"/>'
        f'<path class="interval" d="M{x["forecast"]:.1f} {MIDDLE - 11}v22"/>'
        f'<g class="dag"><g class="{point}"><circle cx="{x["measured"]:.1f}" cy="{MIDDLE}" r="6"/></g></g>'
        f"{labels}</svg>"
    )
