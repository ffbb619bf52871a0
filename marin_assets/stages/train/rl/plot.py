"""Plot the rewards of a training: a PNG with the mean reward of all rollouts and of each lesson, by step."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.stages.train.metrics.loss_plot import series, write_figure
from marin_assets.stages.train.metrics.metrics import Row

REWARD = "rl/reward"


def plot_rewards(rows: Sequence[Row], path: str) -> None:
    """Write the PNG, atomically."""
    from matplotlib.figure import Figure  # 0.4 s to import

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    lessons = sorted({name for row in rows for name in row if name.startswith(f"{REWARD}/")})
    axes.plot(*series(rows, REWARD), color="black", linewidth=1, label="all that are trained")
    for name in lessons:
        axes.plot(*series(rows, name), linewidth=1, label=name.removeprefix(f"{REWARD}/"))
    axes.set(xlabel="step", ylabel="mean reward")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    write_figure(figure, path)
