"""Plot metrics of several runs over their steps: a line for each run, a panel for each metric.

In:  the records of the runs, with `metrics.jsonl`.   Out: a PNG; none of metrics that no run has logged twice.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.report.records import ReportError, StepRecord
from marin_resources.storage.files import write_bytes

METRICS = "metrics.jsonl"
LOGGED = {"loss_end": "eval/loss", "reward_end": "rl/reward"}
"""Numbers of a result -> the metric that they are the end of."""
MOST_IN_THE_LEGEND = 12
PANEL_HEIGHT = 3.2

Curve = Sequence[tuple[int, float]]


def plot_curves(records: Mapping[str, StepRecord], metrics: Sequence[str], best: str, path: str) -> bool:
    """Write the PNG, atomically, and return True; False if no curve exists. Raises ReportError for damaged metrics."""
    curves = {metric: _curves(records, metric) for metric in metrics}
    panels = {metric: lines for metric, lines in curves.items() if lines}
    if not panels:
        return False
    from matplotlib.figure import Figure  # 0.4 s to import

    figure = Figure(figsize=(7, PANEL_HEIGHT * len(panels)), layout="constrained")
    for axes, (metric, lines) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels.items(), strict=True):
        for label, curve in lines.items():
            colour, width = ("black", 1.6) if label == best else (None, 1)
            axes.plot(*zip(*curve, strict=True), color=colour, linewidth=width, label=label)
        axes.set(xlabel="step", ylabel=LOGGED.get(metric, metric))
        axes.grid(alpha=0.3)
        if 1 < len(lines) <= MOST_IN_THE_LEGEND:
            axes.legend(fontsize="small")
    write_plot(figure, path)
    return True


def write_plot(figure: Any, path: str) -> None:
    """Write a figure of matplotlib as a PNG, atomically."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def _curves(records: Mapping[str, StepRecord], metric: str) -> dict[str, Curve]:
    lines = {label: _curve(record, LOGGED.get(metric, metric)) for label, record in records.items()}
    return {label: curve for label, curve in lines.items() if len(curve) > 1}


def _curve(record: StepRecord, metric: str) -> Curve:
    if not record.has(METRICS):
        return []
    name = record.exported_metric(metric)
    try:
        return [(row["step"], row[name]) for row in record.rows(METRICS) if name in row]
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(
            f"The metrics of the run {record.label!r} at {record.path!r} are damaged ({error}). Compute it again."
        ) from error
