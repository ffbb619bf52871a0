"""Plot a training run.

In:  rows of metrics (`metrics.py`).   Out: a PNG with train and validation loss by step; and one with gradient norm,
learning rate, tokens a second, and the weights of the mixture if they are in the rows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.specs.optimizer import AVERAGE
from marin_resources.storage.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {
    "grad/norm/total": "gradient norm",
    "optim/learning_rate": "learning rate",
    "throughput/tokens_per_second": "tokens a second",
}
WEIGHTS = "mixture/weight/"
MOST_WEIGHTS = 12
"""In the legend; more would cover the plot."""
IN_NATS = ("eval/loss", f"eval/{AVERAGE}/loss")


def plot_losses(rows: Sequence[Row], path: str, *, validation_loss: str = "eval/loss") -> None:
    """Write the PNG, atomically. `validation_loss` is the name of that metric."""
    from matplotlib.figure import Figure  # 0.4 s to import

    # Figure and canvas instead of pyplot: they use no window system and no state shared with other code.
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*series(rows, "train/loss"), color="0.7", linewidth=1, label="train")
    axes.plot(*series(rows, validation_loss), color="tab:blue", marker="o", markersize=4, label="validation")
    axes.set(xlabel="step", ylabel="loss (nats a token)" if validation_loss in IN_NATS else "loss")
    axes.grid(alpha=0.3)
    axes.legend()
    write_figure(figure, path)


def series(rows: Sequence[Row], name: str) -> tuple[list[int], list[float]]:
    """Return the numbers of finished steps and the values; the untrained model is at 0."""
    points = [(row["step"] + 1, row[name]) for row in rows if name in row]
    return [step for step, _ in points], [value for _, value in points]


def plot_curves(rows: Sequence[Row], path: str) -> None:
    """Write the PNG, atomically."""
    from matplotlib.figure import Figure  # 0.4 s to import

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
    write_figure(figure, path)


def write_figure(figure: Figure, path: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())
