"""Curves of a result, drawn in place: a list of numbers, such as a loss over time.

Dagster shows Markdown in place only if it has less than a thousand characters, and longer Markdown behind a click. So a
curve is a small SVG of at most 40 points with its first and last value beside it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

POINTS = 40
WIDTH, HEIGHT, MARGIN = 240, 48, 3


def curves_of(result: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """A curve for each list of at least two finite numbers, by its name in the result."""
    return {name: dg.MetadataValue.md(_draw(name, value)) for name, value in result.items() if _is_curve(value)}


def _is_curve(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(_is_number(point) for point in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _draw(name: str, values: Sequence[float]) -> str:
    points = " ".join(f"{x},{y}" for x, y in _places(_thinned(values)))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<polyline fill="none" stroke="#2f6bdb" stroke-width="2" points="{points}"/></svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return f"![{name}](data:image/svg+xml;base64,{data}) {values[0]:.4g} → {values[-1]:.4g}"


def _thinned(values: Sequence[float]) -> list[float]:
    """At most POINTS of them, evenly spaced, with the first and the last."""
    if len(values) <= POINTS:
        return list(values)
    return [values[round(i * (len(values) - 1) / (POINTS - 1))] for i in range(POINTS)]


def _places(values: Sequence[float]) -> list[tuple[int, int]]:
    """Pixels from the top left."""
    low, high = min(values), max(values)
    height = HEIGHT - 2 * MARGIN
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    share = [(high - value) / (high - low) if high > low else 0.5 for value in values]
    return [(round(MARGIN + i * step), round(MARGIN + height * below)) for i, below in enumerate(share)]
