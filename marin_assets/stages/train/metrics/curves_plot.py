"""Plot what a training was like besides its losses.

In:  rows of metrics (`metrics.py`).   Out: a PNG with gradient norm, learning rate, tokens a second, and the weights of
the mixture if they are in the rows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from marin_assets.stages.train.metrics.loss_plot import series
from marin_assets.stages.train.metrics.metrics import Row
from marin_resources.storage.files import write_bytes

PANELS = {
    "grad/norm/total": "gradient norm",
    "optim/learning_rate": "learning rate",
    "throughput/tokens_per_second": "tokens a second",
}
WEIGHTS = "mixture/weight/"
MOST_WEIGHTS = 12
"""In the legend; more would cover the plot."""


def plot_curves(rows: Sequence[Row], path: str) -> None:
    """Write the PNG, atomically."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    weights = sorted({name for row in rows for name in row if name.startswith(WEIGHTS)})
    count = len(PANELS) + bool(weights)
    figure = Figure(figsize=(7, 2 * count), layout="constrained")
    panels: list[Any] = list(figure.subplots(count, 1, sharex=True))
    for axes, (name, label) in zip(panels, PANELS.items(), strict=False):
        axes.plot(*series(rows, name), color="tab:blue", linewidth=1)
        axes.set(ylabel=label)
        axes.grid(alpha=0.3)
    if weights:
        for name in weights:
            panels[-1].step(*series(rows, name), where="post", label=name.removeprefix(WEIGHTS))
        panels[-1].set(ylabel="weight", ylim=(0, 1))
        panels[-1].grid(alpha=0.3)
        if len(weights) <= MOST_WEIGHTS:
            panels[-1].legend(fontsize="small")
    panels[-1].set(xlabel="step")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())
