"""Draw losses over FLOPs as inline SVG: a line a recipe with the intervals of its seeds, or all runs with their front.

The style sheet of `board.html.j2` colours it. Labels are strangers' words: they are escaped, and never in an attribute
that a browser runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from marin_assets.stages.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, scales, ticks
from marin_assets.stages.report.speedruns.entry import Entry
from marin_assets.stages.report.speedruns.groups import Group

At = Callable[[float, float], tuple[float, float]]
COLOURS = 8
"""Classes of colours, `c0` and so on; of more recipes they repeat, with another form of the points."""
FORMS = ("circle", "square", "diamond")
RADIUS = 4.0
MARGIN = 0.03
"""Share of the axes that is left free at each end."""
LEAST_MARGIN = 0.2
"""The least at the ends of the axis of FLOPs, in powers of ten: a single size has a number beside it."""
FEW_TICKS = 3


def draw_recipes(groups: Mapping[str, Sequence[Group]], metric: str) -> str:
    """Draw a line for each label, with a point for each size. Points of several seeds have the 95 % interval of their
    mean; those of a single run are hollow."""
    every = [group for of in groups.values() for group in of]
    heights = [group.mean + sign * (group.half_width or 0.0) for group in every for sign in (-1, 1)]
    axes, at = _axes([group.flops for group in every], heights, metric)
    parts = [axes]
    for place, of in enumerate(groups.values()):
        points = [at(math.log10(group.flops), group.mean) for group in of]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<g class="c{place % COLOURS}"><polyline class="curve" points="{path}"/>')
        for group, (x, y) in zip(of, points, strict=True):
            if group.half_width:
                low, high = (at(0, group.mean + sign * group.half_width)[1] for sign in (-1, 1))
                parts.append(
                    f'<path class="bar" d="M{x:.1f},{low:.1f} V{high:.1f} m-4,0 h8 M{x - 4:.1f},{low:.1f} h8"/>'
                )
            parts.append(mark(place, x, y, hollow=len(group.entries) == 1, title=_title_of_group(group, metric)))
        parts.append("</g>")
    return _svg("".join(parts), f"{metric} by training FLOPs, a line a recipe")


def draw_front(entries: Sequence[Entry], front: Sequence[Entry], metric: str) -> str:
    """Draw all entries, and the line of their Pareto front over model FLOPs."""
    axes, at = _axes([entry.model_flops for entry in entries], [entry.value for entry in entries], metric)
    line = " ".join("{:.1f},{:.1f}".format(*at(math.log10(entry.model_flops), entry.value)) for entry in front)
    names = {entry.name for entry in front}
    parts = [axes, f'<g class="c0"><polyline class="curve" points="{line}"/></g>']
    for entry in sorted(entries, key=lambda entry: entry.name in names):
        kind = "c0" if entry.name in names else "other"
        x, y = at(math.log10(entry.model_flops), entry.value)
        title = f"{entry.name}: {metric} {entry.value:.5g}, {entry.model_flops:.3g} FLOPs"
        parts.append(f'<g class="{kind}">{mark(0, x, y, hollow=False, title=title)}</g>')
    return _svg("".join(parts), f"{metric} by training FLOPs, and the Pareto front")


def mark(place: int, x: float, y: float, *, hollow: bool, title: str = "") -> str:
    """The point of the recipe at this place in the order of recipes."""
    kind, about = "point hollow" if hollow else "point", f"<title>{escape(title)}</title>" if title else ""
    form = FORMS[place // COLOURS % len(FORMS)]
    if form == "circle":
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}">{about}</circle>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if form == "diamond" else ""
    corner, side = f'x="{x - RADIUS:.1f}" y="{y - RADIUS:.1f}"', 2 * RADIUS
    return f'<rect class="{kind}" {corner} width="{side}" height="{side}"{turn}>{about}</rect>'


def legend_of(labels: Iterable[str]) -> list[tuple[str, str, str]]:
    """Label, class of its colour, and its point as SVG."""
    return [(label, f"c{place % COLOURS}", mark(place, 8, 8, hollow=False)) for place, label in enumerate(labels)]


def _axes(flops: Sequence[float], values: Sequence[float], metric: str) -> tuple[str, At]:
    """The grid with its numbers, and the function from (log10 of FLOPs, value) to pixels."""
    low, high = math.log10(min(flops)), math.log10(max(flops))
    wide = max((high - low) * MARGIN, LEAST_MARGIN)
    across = flop_ticks(low - wide, high + wide)
    tall = max(max(values) - min(values), 1e-9 * abs(max(values)), 1e-12) * MARGIN
    up = ticks(min(values) - tall, max(values) + tall, 6)
    at = scales(low - wide, high + wide, up[0], up[-1])
    lines = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at(low, y)[1]:.1f}" y2="{at(low, y)[1]:.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{at(low, y)[1] + 4:.1f}" text-anchor="end">{y:.6g}</text>'
        for y in up
    ]
    lines += [
        f'<line class="grid" x1="{at(math.log10(c), 0)[0]:.1f}" x2="{at(math.log10(c), 0)[0]:.1f}" y1="{TOP}" '
        f'y2="{HEIGHT - BOTTOM}"/><text class="tick" x="{at(math.log10(c), 0)[0]:.1f}" y="{HEIGHT - 22}" '
        f'text-anchor="middle">{c:.0e}</text>'.replace("e+", "e")
        for c in across
    ]
    lines.append(f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">training FLOPs</text>')
    lines.append(f'<text class="tick" x="{LEFT}" y="{HEIGHT - 5}">{escape(metric)}</text>')
    return "".join(lines), at


def flop_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between two logarithms; between powers that are near each other, their 2 and 5 fold too."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    within = [10.0**power for power in powers if low <= power <= high]
    if len(within) >= FEW_TICKS:
        return within[:: -(-len(within) // 8)]
    finer = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [c for c in finer if low <= math.log10(c) <= high]


def _title_of_group(group: Group, metric: str) -> str:
    count = len(group.entries)
    runs = "single run" if count == 1 else f"{count} runs"
    error = f" ± {group.half_width:.2g}" if group.half_width else ""
    return f"{group.label}: {metric} {group.mean:.5g}{error}, {group.flops:.3g} FLOPs, {runs}"


def _svg(content: str, label: str) -> str:
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{content}</svg>'
