"""Draw charts as inline SVG. The page's style sheet colours them, so they follow its light or dark theme."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 300, 46, 12, 12, 40
MAX_POINTS = 600
"""Most points of a curve. Longer runs are thinned, which is invisible at 860 pixels."""
SMOOTHING = 0.9
BAR, CHARACTER = 34, 8

Points = list[tuple[float, float]]


def draw_losses(rows: Iterable[Mapping[str, Any]], validation_loss: str = "eval/loss") -> str | None:
    """Draw training loss, raw and smoothed, and validation loss, by step. Returns None if the rows have no loss."""
    rows = list(rows)
    train = [(float(row["step"]), float(row["train/loss"])) for row in rows if "train/loss" in row]
    held_out = [(float(row["step"]), float(row[validation_loss])) for row in rows if validation_loss in row]
    if not train and not held_out:
        return None
    losses = [y for _, y in train + held_out]
    x_ticks = ticks(0, max(x for x, _ in train + held_out), 8)
    y_ticks = ticks(min(losses), max(losses), 6)
    # The untrained model is step -1; it is drawn at the origin of the axis.
    at = scales(0, max(x_ticks[-1], *(x for x, _ in train + held_out), 1), y_ticks[0], y_ticks[-1])
    axes = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at(0, y)[1]:.1f}" y2="{at(0, y)[1]:.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{at(0, y)[1] + 4:.1f}" text-anchor="end">{y:g}</text>'
        for y in y_ticks
    ) + "".join(
        f'<text class="tick" x="{at(x, 0)[0]:.1f}" y="{HEIGHT - 22}" text-anchor="middle">{x:,g}</text>'
        for x in x_ticks
    )
    curves = polyline("raw", thinned(train), at) + polyline("train", thinned(smoothed(train)), at)
    dots = "".join(dot(x, y, at, validation_loss) for x, y in held_out)
    legend = draw_legend([("train", "train/loss, smoothed"), ("eval", validation_loss)])
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Loss by step">{axes}{curves}'
        f"{polyline('eval', held_out, at)}{dots}{legend}"
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">step</text></svg>'
    )


def scales(x0: float, x1: float, y0: float, y1: float) -> Callable[[float, float], tuple[float, float]]:
    """Return the function from (x, y) of the data to pixels, for axes from x0 to x1 and y0 to y1."""

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = (max(x, x0) - x0) / (x1 - x0), (y - y0) / (y1 - y0)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    return at


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) that enclose `low` to `high`."""
    rough = max(high - low, 1e-9) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    begin, end = math.floor(low / step), math.ceil(high / step)
    return [round(n * step, 10) for n in range(begin, max(end, begin + 1) + 1)]


def smoothed(points: Points) -> Points:
    """Return the exponential moving average, with bias correction (Kingma and Ba 2015)."""
    mean, averages = 0.0, []
    for number, (x, y) in enumerate(points, 1):
        mean = SMOOTHING * mean + (1 - SMOOTHING) * y
        averages.append((x, mean / (1 - SMOOTHING**number)))
    return averages


def thinned(points: Points) -> Points:
    stride = -(-len(points) // MAX_POINTS) if points else 1
    return [*points[:-1:stride], *points[-1:]]


def polyline(name: str, points: Points, at: Callable[[float, float], tuple[float, float]]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in points)
    return f'<polyline class="curve {name}" points="{path}"/>' if points else ""


def dot(x: float, y: float, at: Callable[[float, float], tuple[float, float]], name: str) -> str:
    cx, cy = at(x, y)
    where = "untrained" if x < 0 else f"step {x:,g}"
    title = f"<title>{where}: {escape(name)} {y:.4g}</title>"
    return f'<circle class="dot eval" cx="{cx:.1f}" cy="{cy:.1f}" r="3.5">{title}</circle>'


def draw_legend(entries: Sequence[tuple[str, str]]) -> str:
    lines = (
        f'<line class="curve {name}" x1="{WIDTH - 190}" x2="{WIDTH - 166}" y1="{y}" y2="{y}"/>'
        f'<text class="tick" x="{WIDTH - 158}" y="{y + 4}">{escape(label)}</text>'
        for y, (name, label) in zip(itertools.count(TOP + 12, 20), entries, strict=False)
    )
    return "".join(lines)


def draw_score_bars(
    task: str, scores: Mapping[str, float], number: Callable[[str, str], str], interval: float = 1.96
) -> str | None:
    """Draw each accuracy of a task with its 95% confidence interval, and the accuracy of guessing.

    `number(metric, attributes)` returns the text element of a metric. Returns None if the task has no accuracy.
    """
    metrics = [m for m in scores if f"{m}_stderr" in scores and 0 <= scores[m] <= 1]
    if not metrics:
        return None
    height = BAR * len(metrics) + 30
    label_width = CHARACTER * max(map(len, metrics)) + 14
    span = WIDTH - label_width - 80

    def x(value: float) -> float:
        return label_width + span * min(max(value, 0.0), 1.0)

    rows = []
    for place, metric in enumerate(metrics):
        y = BAR * place + 6
        low, high = (scores[metric] + sign * interval * scores[f"{metric}_stderr"] for sign in (-1, 1))
        middle = y + BAR / 2 - 5
        rows.append(
            f'<text class="label" x="{label_width - 10}" y="{middle + 4}" text-anchor="end">{escape(metric)}</text>'
            f'<rect class="bar" x="{x(0)}" y="{y}" width="{x(scores[metric]) - x(0):.1f}" height="{BAR - 10}" rx="3"/>'
            f'<path class="interval" d="M{x(low):.1f},{middle} H{x(high):.1f} M{x(low):.1f},{middle - 5} v10 '
            f'M{x(high):.1f},{middle - 5} v10"/>'
            + number(metric, f'class="value" x="{x(high) + 10:.1f}" y="{middle + 4}"')
        )
    axis = "".join(
        f'<text class="tick" x="{x(t / 4):.1f}" y="{height - 6}" text-anchor="middle">{t / 4:g}</text>'
        for t in range(5)
    )
    bottom = BAR * len(metrics) + 4
    chance = scores.get("chance")
    line = (
        "" if chance is None else f'<path class="chance" d="M{x(chance):.1f},0 V{bottom}"><title>chance</title></path>'
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Scores of {escape(task)}">'
        f"{''.join(rows)}{line}{axis}</svg>"
    )
