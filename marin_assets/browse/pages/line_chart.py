"""The chart of a task over training: a line for each training, its 95% band, and dashes where a checkpoint lacks the
score. Numbers that a template draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from marin_assets.stages.report.charts import ticks

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 240, 50, 14, 10, 26
X_TICKS, Y_TICKS = 6, 5
UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))
LEAST_SPREAD = 1e-3
"""Length of an axis whose values are all equal."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A score of a checkpoint."""

    x: int
    """Tokens, or steps."""
    y: float
    half: float | None
    """Half of its 95% confidence interval."""
    title: str
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class DrawnLine:
    """The line of a training, as attributes of SVG."""

    number: int
    """Number of the training, which decides the colour."""
    paths: list[str] = field(default_factory=list)
    bands: list[str] = field(default_factory=list)
    bridges: list[str] = field(default_factory=list)
    """From one checkpoint to the next that has the score, over some without it."""
    bars: list[tuple[str, str, str]] = field(default_factory=list)
    """Place, and both ends of the interval, of a point without neighbours."""
    gaps: list[str] = field(default_factory=list)
    """Places of the checkpoints without the score, of a training that has it at others."""
    dots: list[tuple[str, str, Point]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class DrawnChart:
    x_ticks: list[tuple[str, str]]
    """Place and label."""
    y_ticks: list[tuple[str, str]]
    lines: list[DrawnLine]
    chance: str
    """Place of the score of guessing; empty without one."""


Line = Sequence[tuple[int, Point | None]]
"""A training: place and point of each of its checkpoints in order; None for one without the score."""


def draw_chart(lines: Sequence[Line], last_x: int, chance: float | None) -> DrawnChart | None:
    """Return the chart of a task, with a line for each training.

    All charts of a page end at `last_x`. None if no checkpoint has a score.
    """
    points = [point for line in lines for _, point in line if point is not None]
    if not points:
        return None
    lows, highs = ([point.y + sign * (point.half or 0) for point in points] for sign in (-1, 1))
    low, high = min(lows), max(highs)
    y_ticks = ticks(low, max(high, low + LEAST_SPREAD), Y_TICKS)
    x_ticks = [x for x in ticks(0, max(last_x, 1), X_TICKS) if x <= max(last_x, 1)]

    def across(x: float) -> str:
        return f"{LEFT + x / max(last_x, 1) * (WIDTH - LEFT - RIGHT):.1f}"

    def up(y: float) -> str:
        return f"{HEIGHT - BOTTOM - (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * (HEIGHT - TOP - BOTTOM):.1f}"

    def drawn(number: int, line: Line) -> DrawnLine:
        parts = _parts(line)
        result = DrawnLine(number=number, gaps=[across(x) for x, point in line if point is None and parts])
        for part in parts:
            result.paths.append(" ".join(f"{across(point.x)},{up(point.y)}" for point in part))
            upper = [f"{across(point.x)},{up(point.y + (point.half or 0))}" for point in part]
            lower = [f"{across(point.x)},{up(point.y - (point.half or 0))}" for point in reversed(part)]
            if len(part) > 1 and any(point.half for point in part):
                result.bands.append(" ".join([*upper, *lower]))
            if len(part) == 1 and (half := part[0].half):
                result.bars.append((across(part[0].x), up(part[0].y - half), up(part[0].y + half)))
            result.dots.extend((across(point.x), up(point.y), point) for point in part)
        for before, after in pairwise(parts):
            ends = (before[-1], after[0])
            result.bridges.append(" ".join(f"{across(point.x)},{up(point.y)}" for point in ends))
        return result

    is_inside = chance is not None and y_ticks[0] <= chance <= y_ticks[-1]
    return DrawnChart(
        x_ticks=[(across(x), short_count(x)) for x in x_ticks],
        y_ticks=[(up(y), f"{y:g}") for y in y_ticks],
        lines=[drawn(number, line) for number, line in enumerate(lines)],
        chance=up(chance) if is_inside and chance is not None else "",
    )


def _parts(line: Line) -> list[list[Point]]:
    """The points, divided where a checkpoint lacks the score."""
    parts: list[list[Point]] = [[]]
    for _, point in line:
        if point is None:
            parts.append([])
        else:
            parts[-1].append(point)
    return [part for part in parts if part]


def short_count(number: float) -> str:
    """A number of tokens or steps for an axis: "1.5B"."""
    for unit, name in UNITS:
        if number >= unit:
            return f"{number / unit:.4g}{name}"
    return f"{number:g}"
