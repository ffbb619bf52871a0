"""Plot the losses of a training run.

In:  rows of metrics (`metrics.py`).   Out: a PNG with train and validation loss by step.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.specs.optimizer import AVERAGE
from marin_resources.storage.files import write_bytes

IN_NATS = ("eval/loss", f"eval/{AVERAGE}/loss")


def plot_losses(rows: Sequence[Row], path: str, *, validation_loss: str = "eval/loss") -> None:
    """Write the PNG, atomically. `validation_loss` is the name of that metric."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    # Figure and canvas instead of pyplot: they use no window system and no state shared with other code.
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*series(rows, "train/loss"), color="0.7", linewidth=1, label="train")
    axes.plot(*series(rows, validation_loss), color="tab:blue", marker="o", markersize=4, label="validation")
    axes.set(xlabel="step", ylabel="loss (nats a token)" if validation_loss in IN_NATS else "loss")
    axes.grid(alpha=0.3)
    axes.legend()
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def series(rows: Sequence[Row], name: str) -> tuple[list[int], list[float]]:
    """Return the numbers of finished steps and the values; the untrained model is at 0."""
    points = [(row["step"] + 1, row[name]) for row in rows if name in row]
    return [step for step, _ in points], [value for _, value in points]
