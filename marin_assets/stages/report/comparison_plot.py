"""Plot the measured values of runs by what was varied.

One panel for each metric. With one or more values that were varied, the first is the axis, and the runs that have the
other values in common are a line; without, or where the first is no number, each run is a bar. The best run is marked.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from marin_resources.storage.files import write_bytes

PANEL_HEIGHT = 3.2
SPREAD_OF_A_LOG_AXIS = 8.0
"""Largest by smallest value, from which the axis is logarithmic."""
MOST_IN_THE_LEGEND = 12


def plot_comparison(
    values: Mapping[str, Mapping[str, float]],
    varied: Mapping[str, Mapping[str, Any]],
    metrics: Sequence[str],
    best: str,
    path: str,
) -> None:
    """Write the PNG, atomically. `values`: run -> metric -> value. A value that is not finite has no point."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    axis = _axis_of(values, varied)
    height = PANEL_HEIGHT if axis else max(PANEL_HEIGHT / 2, 0.35 * len(values) + 0.9)
    figure = Figure(figsize=(7, height * len(metrics)), layout="constrained")
    for panel, metric in zip(figure.subplots(len(metrics), 1, squeeze=False)[:, 0], metrics, strict=True):
        points = {label: row[metric] for label, row in values.items() if math.isfinite(row[metric])}
        if axis:
            _draw_lines(panel, axis, points, varied, best)
            panel.set(xlabel=axis, ylabel=metric)
        else:
            _draw_bars(panel, points, best)
            panel.set(xlabel=metric)
        panel.grid(alpha=0.3)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def _axis_of(values: Mapping[str, Any], varied: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The first thing that was varied, if every run has a number of it."""
    first = next((name for label in values for name in varied.get(label, {})), None)
    numbers = [varied.get(label, {}).get(first) for label in values] if first is not None else []
    is_number = [isinstance(number, int | float) and not isinstance(number, bool) for number in numbers]
    return first if first is not None and all(is_number) and len(set(numbers)) > 1 else None


def _draw_lines(
    panel: Any, axis: str, points: Mapping[str, float], varied: Mapping[str, Mapping[str, Any]], best: str
) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for label, value in points.items():
        others = ", ".join(f"{name} {given}" for name, given in varied[label].items() if name != axis)
        lines.setdefault(others, []).append((varied[label][axis], value))
    for name, line in lines.items():
        panel.plot(*zip(*sorted(line), strict=True), marker="o", markersize=4, linewidth=1, label=name)
    if best in points:
        panel.plot(varied[best][axis], points[best], marker="*", markersize=13, color="black", linestyle="none")
    places = [given[axis] for given in varied.values() if axis in given]
    if min(places) > 0 and max(places) / min(places) >= SPREAD_OF_A_LOG_AXIS:
        panel.set_xscale("log")
    if 1 < len(lines) <= MOST_IN_THE_LEGEND:
        panel.legend(fontsize="small")


def _draw_bars(panel: Any, points: Mapping[str, float], best: str) -> None:
    labels = list(points)[::-1]
    colours = ["tab:blue" if label == best else "0.7" for label in labels]
    panel.barh(labels, [points[label] for label in labels], color=colours)
    for place, label in enumerate(labels):
        panel.annotate(f" {points[label]:.4g}", (points[label], place), va="center", fontsize="small")
    panel.margins(x=0.15)
